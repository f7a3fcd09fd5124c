// GET /ws: greeting, feature flags, and then what comes into the mailbox.
#include <exception>
#include <utility>

#include "base/id.hpp"
#include "comfy/members.hpp"
#include "comfy/server/routes.hpp"
#include "net/websocket_stream.hpp"

namespace comfyd::comfy::server {
namespace {

constexpr std::size_t kClientIdBytesMax = 256;
constexpr unsigned short kGoingAway = 1001;

// Reader and writer of one socket. Lives in the frame of converse(), which joins both.
class Conversation {
public:
    Conversation(
        const net::Exchange& exchange,
        net::WebSocket& socket,
        Mailbox& mailbox,
        json::object features,
        Millis patience
    )
        : exchange_(exchange),
          socket_(socket),
          mailbox_(mailbox),
          features_(std::move(features)),
          patience_(patience) {}

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
            auto frame = co_await mailbox_.next(patience_);
            if (exchange_.draining()) {
                co_return fail(Code::shutting_down, "the server stops");
            }
            if (!frame && frame.error().code == Code::request_timeout) {
                continue;
            }
            if (!frame) {
                co_return fail(std::move(frame.error()));
            }
            const Frame& next = **frame;
            auto sent =
                co_await socket_.write(next.encode(mailbox_.with_metadata()), next.is_binary());
            if (!sent) {
                co_return sent;
            }
        }
    }

private:
    void greet_features(const std::string& text) {
        const auto message = json::parse_object(text);
        if (!message || text_of(*message, "type") != "feature_flags") {
            return;
        }
        const json::object* flags = object_of(*message, "data");
        mailbox_.set_features(flags != nullptr && is_true(*flags, "supports_preview_metadata"));
        mailbox_.push(make_frame("feature_flags", features_));
    }

    const net::Exchange& exchange_;
    net::WebSocket& socket_;
    Mailbox& mailbox_;
    json::object features_;
    Millis patience_;
};

Task<> converse(Call& call, Backend& backend, net::WebSocket& socket, Mailbox& mailbox) {
    Conversation conversation(
        call.exchange,
        socket,
        mailbox,
        server_features(backend.limits().upload_bytes_max),
        backend.socket_rules().patience
    );
    TaskGroup group(call.exchange.executor());
    mailbox.on_full([&socket] { socket.abort(); });
    group.spawn("socket reader", conversation.read());
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
    mailbox.end(Code::cancelled);
    group.cancel();
    // join() returns early when this task is cancelled too, but the reader uses this frame.
    while (group.size() > 0) {
        co_await group.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

std::string new_sid() {
    std::string sid = Uuid::make(SystemClock().now()).to_string();
    std::erase(sid, '-');
    return sid;
}

// What a new socket is told first. A client that comes back in the middle of its run is told where
// that is.
Task<Result<>> greet(net::WebSocket& socket, std::string sid, const Seat& seat) {
    Status status;
    status.queue_remaining = static_cast<std::int64_t>(seat.unfinished);
    status.sid = std::move(sid);
    auto sent = co_await socket.write(encode_text(status), false);
    if (sent && !seat.current_node.empty()) {
        const json::object executing{
            {"type", "executing"}, {"data", {{"node", seat.current_node}}}
        };
        sent = co_await socket.write(json::serialize_python(executing), false);
    }
    co_return sent;
}

Task<> refuse_handshake(Call& call) {
    co_await answer(call, text_reply(400, "This address is for WebSockets only."));
}

}  // namespace

Task<> serve_socket(Call& call, Backend& backend) {
    std::string sid(call.query_value("clientId").substr(0, kClientIdBytesMax));
    if (sid.empty()) {
        sid = new_sid();
    }
    auto room = backend.reserve_socket();
    if (!room) {
        co_await answer(call, encode_error(room.error()));
        co_return;
    }
    const SocketRules rules = backend.socket_rules();
    if (!net::is_websocket_handshake(call.exchange.request())) {
        co_await refuse_handshake(call);
        co_return;
    }
    // Before the handshake is answered: a client that posts a prompt at once hears all of its
    // story.
    const auto mailbox = std::make_shared<Mailbox>(call.exchange.executor(), rules.mailbox);
    auto seat = co_await backend.attach(sid, mailbox);
    auto socket = co_await call.exchange.upgrade(rules.options);
    if (!socket) {
        if (!call.exchange.answered()) {
            co_await refuse_handshake(call);
        }
        co_return;
    }
    auto greeted = co_await greet(**socket, std::move(sid), seat);
    if (greeted) {
        co_await converse(call, backend, **socket, *mailbox);
    }
}

}  // namespace comfyd::comfy::server
