// GET /ws: greeting, feature flags, and then what the board posts.
#include <exception>
#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "api/dialects/native/frames.hpp"
#include "api/dialects/native/routes.hpp"
#include "api/dialects/native/story.hpp"
#include "api/sse.hpp"
#include "base/hop.hpp"
#include "comfy/members.hpp"
#include "net/websocket.hpp"

namespace comfyd::api::native {
namespace {

constexpr std::size_t kClientMessageBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kClientIdBytesMax = 256;
constexpr unsigned short kGoingAway = 1001;

// A socket's seat on the board, given back when the connection ends, however it ends.
class Seat {
public:
    Seat(Context& context, std::string tenant, std::shared_ptr<Mailbox> mailbox)
        : context_(context), tenant_(std::move(tenant)), mailbox_(std::move(mailbox)) {}
    ~Seat() {
        boost::asio::post(
            context_.board->executor(),
            [board = context_.board, tenant = tenant_, mailbox = mailbox_] {
                board->detach(tenant, mailbox.get());
            }
        );
    }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

private:
    Context& context_;
    std::string tenant_;
    std::shared_ptr<Mailbox> mailbox_;
};

// Reader and writer of one socket. Lives in the frame of serve_socket(), which joins both.
class Conversation {
public:
    Conversation(
        const Call& call, const Services& services, net::WebSocket& socket, Mailbox& mailbox
    )
        : exchange_(call.exchange), services_(services), socket_(socket), mailbox_(mailbox) {}

    // Only the first message counts, and only when it tells the client's features.
    Task<> read() {
        bool is_first = true;
        for (;;) {
            auto message = co_await socket_.read();
            if (!message) {
                break;
            }
            if (std::exchange(is_first, false) && !message->binary) {
                greet_features(message->data);
            }
        }
        mailbox_.end(Code::cancelled);
    }

    Task<Result<>> write() {
        for (;;) {
            auto frame = co_await mailbox_.next(services_.options.heartbeat);
            if (exchange_.draining()) {
                co_return fail(Code::shutting_down, "the server stops");
            }
            if (!frame && frame.error().code == Code::request_timeout) {
                continue;
            }
            if (!frame) {
                co_return fail(std::move(frame.error()));
            }
            const bool is_text = !(*frame)->preview && !(*frame)->text;
            auto sent = co_await socket_.write(encode(**frame), !is_text);
            if (!sent) {
                co_return sent;
            }
        }
    }

private:
    void greet_features(const std::string& text) {
        const auto message = json::parse_object(text);
        if (!message || comfy::text_of(*message, "type") != "feature_flags") {
            return;
        }
        if (const json::object* flags = comfy::object_of(*message, "data")) {
            const json::value* wanted = json::find(*flags, "supports_preview_metadata");
            with_metadata_ = wanted != nullptr && wanted->is_bool() && wanted->get_bool();
        }
        mailbox_.push(make_frame("feature_flags", server_features(services_)));
    }

    std::string encode(const Frame& frame) const {
        if (frame.preview) {
            return comfy::encode_binary(*frame.preview, with_metadata_);
        }
        if (frame.text) {
            return comfy::encode_binary(*frame.text);
        }
        return json::serialize_python(frame.message);
    }

    const net::Exchange& exchange_;
    const Services& services_;
    net::WebSocket& socket_;
    Mailbox& mailbox_;
    bool with_metadata_ = false;
};

Task<> converse(Call& call, const Services& services, net::WebSocket& socket, Mailbox& mailbox) {
    Conversation conversation(call, services, socket, mailbox);
    TaskGroup group(call.exchange.executor());
    mailbox.on_full([&socket] { socket.abort(); });
    group.spawn("native socket reader", conversation.read());
    std::exception_ptr failure;
    try {
        auto written = co_await conversation.write();
        const Code code = written ? Code::cancelled : written.error().code;
        if (code == Code::shutting_down) {
            co_await socket.close(kGoingAway, "the server stops");
        } else {
            socket.abort();
        }
    } catch (...) {
        failure = std::current_exception();
        socket.abort();
    }
    mailbox.on_full(nullptr);
    group.cancel();
    // join() returns early when this task is cancelled too, but the reader uses this frame.
    while (group.size() > 0) {
        co_await group.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

std::string new_sid(Time now) {
    std::string sid = Uuid::make(now).to_string();
    std::erase(sid, '-');
    return sid;
}

}  // namespace

json::object server_features(const Services& services) {
    return {
        {"supports_preview_metadata", true},
        {"supports_model_type_tags", true},
        {"max_upload_size", services.options.upload_bytes_max},
        {"extension", {{"manager", {{"supports_v4", true}}}}},
        {"node_replacements", true},
        {"assets", false},
    };
}

Task<> serve_socket(Call& call, Context& context) {
    const Services& services = context.services;
    std::string sid(call.query_value("clientId").substr(0, kClientIdBytesMax));
    if (sid.empty()) {
        sid = new_sid(services.clock.now());
    }
    auto slot = StreamSlot::open(services);
    if (!slot) {
        co_await send(call, encode_native_error(slot.error()));
        co_return;
    }
    net::WebSocketOptions options;
    options.message_bytes_max = kClientMessageBytesMax;
    options.idle_timeout = std::chrono::ceil<std::chrono::seconds>(4 * services.options.heartbeat);
    auto socket = co_await call.exchange.upgrade(std::move(options));
    if (!socket) {
        if (!call.exchange.answered()) {
            co_await send(call, empty_reply(400));
        }
        co_return;
    }
    const std::string tenant = call.caller.tenant;
    const auto mailbox = std::make_shared<Mailbox>(call.exchange.executor());
    auto running =
        co_await call_on(context.board->executor(), [board = context.board, tenant, sid, mailbox] {
            return board->attach(tenant, sid, mailbox);
        });
    const Seat seat(context, tenant, mailbox);
    const std::size_t unfinished = co_await services.jobs.unfinished(tenant);
    json::object status = status_data(unfinished);
    status["sid"] = sid;
    const json::object hello{{"type", "status"}, {"data", std::move(status)}};
    auto sent = co_await (*socket)->write(json::serialize_python(hello), false);
    if (sent && running) {
        auto view = co_await services.jobs.get(tenant, *running);
        if (view && view->progress && !view->progress->current_node.empty()) {
            const json::object executing{
                {"type", "executing"}, {"data", {{"node", view->progress->current_node}}}
            };
            sent = co_await (*socket)->write(json::serialize_python(executing), false);
        }
    }
    if (sent) {
        co_await converse(call, services, **socket, *mailbox);
    }
}

}  // namespace comfyd::api::native
