#include "api/dialects/workflows/workflows_socket.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "api/dialects/job_stream.hpp"
#include "api/sse.hpp"
#include "api/submission.hpp"
#include "net/websocket.hpp"

namespace comfyd::api::workflows {
namespace {

constexpr std::size_t kClientMessageBytesMax = 64 * 1024;
constexpr unsigned short kNormal = 1000;
constexpr unsigned short kGoingAway = 1001;
constexpr unsigned short kTryAgainLater = 1013;

// What reader and writer share. Lives in the frame of serve_socket(), which joins both.
class Conversation {
public:
    Conversation(
        const Call& call,
        const Services& services,
        const StreamOpening& opening,
        net::WebSocket& socket,
        std::shared_ptr<events::Subscription> subscription
    )
        : exchange_(call.exchange),
          services_(services),
          tenant_(call.caller.tenant),
          job_(opening.shown.view.job.id),
          socket_(socket),
          subscription_(std::move(subscription)),
          encoder_(opening.shown.view, execution::links_of(call, services)),
          form_("workflows socket\n" + base_url(call.request, services.options) + '\n'),
          idle_(call.exchange.executor()) {}

    // Ends when the client leaves or the task is cancelled, and ends the subscription, for which
    // the writer waits.
    Task<> read() {
        for (;;) {
            auto message = co_await socket_.read();
            if (!message) {
                break;
            }
            auto replied = co_await handle(std::move(*message));
            if (!replied) {
                break;
            }
        }
        subscription_->end(Code::cancelled);
    }

    // Sends events until the last one. The error's code says why it stopped earlier.
    Task<Result<>> write(json::object state, Millis patience) {
        if (!state.empty()) {
            auto sent = co_await send(json::serialize(state), false);
            if (!sent) {
                co_return sent;
            }
        }
        for (;;) {
            auto event = co_await subscription_->next(patience);
            if (exchange_.draining()) {
                co_return fail(Code::shutting_down, "the server stops");
            }
            if (!event && event.error().code == Code::request_timeout) {
                continue;
            }
            if (!event) {
                co_return fail(std::move(event.error()));
            }
            const bool preview = (*event)->type == jobs::EventType::preview;
            const FramePtr data = encode(*event);
            auto sent = co_await send(*data, preview);
            if (!sent || encoder_.is_last(**event)) {
                co_return sent;
            }
        }
    }

private:
    FramePtr encode(const events::EventPtr& event) {
        encoder_.follow(*event);
        return services_.frames->get(event, form_ + encoder_.variant_of(*event), [&] {
            return std::optional(
                event->type == jobs::EventType::preview ? encode_preview(*event)
                                                        : json::serialize(encoder_.encode(*event))
            );
        });
    }

    Task<Result<>> handle(net::WebSocketMessage message) {
        const auto wanted = decode_client_message(message.data, message.binary);
        if (!wanted) {
            auto sent = co_await send_error(wanted.error());
            co_return sent;
        }
        if (*wanted == ClientMessage::ping) {
            const json::object pong{
                {"type", "pong"}, {"timestamp", to_rfc3339(services_.clock.now())}
            };
            auto sent = co_await send(json::serialize(pong), false);
            co_return sent;
        }
        // The events that follow tell of the success.
        auto cancelled = co_await services_.jobs.cancel(tenant_, job_);
        if (!cancelled) {
            auto sent = co_await send_error(std::move(cancelled.error()));
            co_return sent;
        }
        co_return Result<>();
    }

    Task<Result<>> send_error(Error error) {
        const json::object body{
            {"type", "error"},
            {"execution_id", job_.to_string()},
            {"error", execution::encode_error(error, services_.clock.now())},
        };
        return send(json::serialize(body), false);
    }

    // The socket takes one write at a time; reader and writer both have something to say.
    Task<Result<>> send(std::string data, bool binary) {
        while (writing_) {
            const bool woken = co_await idle_.wait();
            if (!woken) {
                co_return fail(Code::cancelled, "the connection is being closed");
            }
        }
        writing_ = true;
        auto sent = co_await socket_.write(std::move(data), binary);
        writing_ = false;
        idle_.notify();
        co_return sent;
    }

    const net::Exchange& exchange_;
    const Services& services_;
    const std::string tenant_;
    const JobId job_;
    net::WebSocket& socket_;
    std::shared_ptr<events::Subscription> subscription_;
    execution::EventEncoder encoder_;
    const std::string form_;  // of what FrameShelf keeps
    Signal idle_;
    bool writing_ = false;
};

Task<> close(net::WebSocket& socket, const Result<>& written) {
    // not_found: the stream of an ended job has no more events.
    if (written || written.error().code == Code::not_found) {
        co_await socket.close(kNormal, "the execution has ended");
    } else if (written.error().code == Code::shutting_down) {
        co_await socket.close(kGoingAway, "the server stops; connect again with ?since=");
    } else if (written.error().code == Code::too_many_streams) {
        co_await socket.close(kTryAgainLater, "too slow; connect again with ?since=");
    } else {
        socket.abort();
    }
}

Task<> converse(
    Call& call,
    const Services& services,
    const StreamOpening& opening,
    net::WebSocket& socket,
    std::shared_ptr<events::Subscription> subscription
) {
    json::object state;
    if (!opening.since) {
        state = execution::encode_execution(opening.shown, execution::links_of(call, services));
        state["type"] = "state";
        state["sequence"] = opening.first_after();
    }
    Conversation conversation(call, services, opening, socket, std::move(subscription));
    TaskGroup group(call.exchange.executor());
    group.spawn("workflow socket reader", conversation.read());
    std::exception_ptr failure;
    try {
        auto written = co_await conversation.write(std::move(state), services.options.heartbeat);
        co_await close(socket, written);
    } catch (...) {
        failure = std::current_exception();
        socket.abort();
    }
    group.cancel();
    // join() returns early when this task is cancelled too, but the reader uses this frame.
    while (group.size() > 0) {
        co_await group.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

Task<> refuse(Call& call, const Services& services, const Version& version, Error error) {
    auto sent = co_await call.exchange.send(
        error_response(error, services.clock.now(), version, call.request.path)
    );
    static_cast<void>(sent);  // a client that is gone needs no answer
}

}  // namespace

std::string encode_preview(const jobs::Event& event) {
    constexpr char kPreviewImage = 1;
    constexpr char kJpeg = 1;
    constexpr char kPng = 2;
    const char format = event.preview_type == "image/png" ? kPng : kJpeg;
    std::string frame{0, 0, 0, kPreviewImage, 0, 0, 0, format};
    frame += event.preview;
    return frame;
}

Result<ClientMessage> decode_client_message(const std::string& data, bool binary) {
    if (binary) {
        return fail(Code::invalid_argument, "messages to this socket are JSON text, not binary");
    }
    const auto message = json::parse_object(data);
    if (!message) {
        return fail(message.error());
    }
    const auto type = json::find_string(*message, "type");
    if (!type) {
        return fail(type.error());
    }
    if (type->value_or("") == "cancel") {
        return ClientMessage::cancel;
    }
    if (type->value_or("") == "ping") {
        return ClientMessage::ping;
    }
    return fail(
        Code::invalid_argument,
        "'type' must be \"cancel\" or \"ping\": this socket understands nothing else",
        {{"field", "type"}}
    );
}

Task<> serve_socket(Call& call, const Services& services, const Version& version) {
    const auto since = execution::parse_sequence(call.query_value("since"));
    if (!since) {
        co_await refuse(call, services, version, since.error());
        co_return;
    }
    auto opening = co_await open_stream(call, services, *since);
    if (!opening) {
        co_await refuse(call, services, version, std::move(opening.error()));
        co_return;
    }
    auto slot = StreamSlot::open(services);
    if (!slot) {
        co_await refuse(call, services, version, std::move(slot.error()));
        co_return;
    }
    const std::string_view previews = call.query_value("previews");
    events::WatchOptions watch;
    watch.since = opening->first_after();
    watch.previews = previews == "1" || previews == "true";
    auto subscription =
        co_await services.jobs.watch(call.caller.tenant, opening->shown.view.job.id, watch);
    if (!subscription) {
        co_await refuse(call, services, version, std::move(subscription.error()));
        co_return;
    }
    net::WebSocketOptions options;
    options.message_bytes_max = kClientMessageBytesMax;
    options.idle_timeout = std::chrono::ceil<std::chrono::seconds>(2 * services.options.heartbeat);
    add_version_headers(options.headers, version, call.request.path);
    auto socket = co_await call.exchange.upgrade(std::move(options));
    if (!socket) {
        if (!call.exchange.answered()) {
            co_await refuse(call, services, version, std::move(socket.error()));
        }
        co_return;
    }
    if (opening->is_over()) {
        co_await (*socket)->close(kNormal, "the execution has ended");
        co_return;
    }
    co_await converse(call, services, *opening, **socket, std::move(*subscription));
}

}  // namespace comfyd::api::workflows
