#include "standalone/hub.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <utility>

#include "base/id.hpp"
#include "comfy/members.hpp"
#include "comfy/replies.hpp"

namespace comfyd::standalone {
namespace {

constexpr unsigned short kGoingAway = 1001;
constexpr std::size_t kFramesMax = 100'000;
// About what ComfyUI itself needs for the smallest prompt.
constexpr Millis kHesitation{4};
// Under load this stands for a frame's own cost in the buffer.
constexpr std::size_t kFrameBytes = 64;

std::string new_client_id() {
    std::string id = Uuid::make(SystemClock().now()).to_string();
    std::erase(id, '-');
    return id;
}

}  // namespace

struct Hub::Socket {
    Socket(std::string id, net::WebSocket& web_socket, Executor executor)
        : client_id(std::move(id)), connection(web_socket), changed(executor) {}

    enum class End { none, stopped, gone };
    struct Waiting {
        FramePtr data;
        bool binary;
    };

    std::string client_id;
    net::WebSocket& connection;  // lives as long as the socket is in the list
    Signal changed;
    std::deque<Waiting> waiting;
    std::size_t bytes = 0;
    bool has_features = false;
    bool with_metadata = false;
    bool hesitates = false;
    End end = End::none;

    void finish(End how) {
        if (end == End::none) {
            end = how;
            changed.notify();
        }
    }
};

// Reader and writer of one socket. Lives in the frame of serve(), which joins both.
class Hub::Conversation {
public:
    Conversation(Hub& hub, SocketPtr socket, net::WebSocket& connection, std::string features)
        : hub_(hub),
          socket_(std::move(socket)),
          connection_(connection),
          features_(std::move(features)) {}

    // Only the first message counts, and only when it tells the client's features.
    Task<> read() {
        bool is_first = true;
        for (;;) {
            auto message = co_await connection_.read();
            if (!message) {
                break;
            }
            if (std::exchange(is_first, false) && !message->binary) {
                take_features(message->data);
            }
        }
        socket_->finish(Socket::End::gone);
    }

    Task<> write() {
        // What waited through a pause is written before the next one: a client that submits all
        // the time is told of it too.
        std::size_t before_pause = 0;
        while (socket_->end == Socket::End::none) {
            if (socket_->waiting.empty()) {
                const bool woken = co_await socket_->changed.wait();
                if (!woken) {
                    socket_->finish(Socket::End::gone);
                }
                continue;
            }
            if (before_pause == 0 && std::exchange(socket_->hesitates, false)) {
                co_await sleep_for(kHesitation);
                before_pause = socket_->waiting.size();
                continue;
            }
            before_pause -= before_pause > 0 ? 1 : 0;
            const Socket::Waiting next = std::move(socket_->waiting.front());
            socket_->waiting.pop_front();
            auto written = co_await connection_.write(std::string(*next.data), next.binary);
            socket_->bytes -= next.data->size() + kFrameBytes;
            if (!written) {
                socket_->finish(Socket::End::gone);
            }
        }
    }

private:
    void take_features(const std::string& text) {
        const auto message = json::parse_object(text);
        if (!message || comfy::text_of(*message, "type") != "feature_flags") {
            return;
        }
        socket_->has_features = true;
        if (const json::object* flags = comfy::object_of(*message, "data")) {
            const json::value* wanted = json::find(*flags, "supports_preview_metadata");
            socket_->with_metadata = wanted != nullptr && *wanted == json::value(true);
        }
        hub_.push(*socket_, std::make_shared<const std::string>(features_), false);
    }

    Hub& hub_;
    SocketPtr socket_;
    net::WebSocket& connection_;
    std::string features_;
};

void Hub::push(Socket& socket, FramePtr data, bool binary) const {
    if (socket.end != Socket::End::none) {
        return;
    }
    socket.bytes += data->size() + kFrameBytes;
    // A single message may be larger than the buffer: it is sent when nothing else waits.
    if ((socket.bytes > bytes_max_ && !socket.waiting.empty()) ||
        socket.waiting.size() >= kFramesMax) {
        // Its writer hangs in a write, which only this ends.
        socket.finish(Socket::End::gone);
        socket.connection.abort();
        return;
    }
    socket.waiting.push_back({std::move(data), binary});
    if (socket.waiting.size() == 1) {
        socket.changed.notify();
    }
}

Hub::Socket* Hub::newest(std::string_view client_id) const {
    const auto found = std::ranges::find_if(
        sockets_.rbegin(),
        sockets_.rend(),
        [client_id](const SocketPtr& socket) {
            return socket->client_id == client_id && socket->end == Socket::End::none;
        }
    );
    return found == sockets_.rend() ? nullptr : found->get();
}

void Hub::hesitate(std::string_view client_id) {
    Socket* socket = client_id.empty() ? nullptr : newest(client_id);
    if (socket != nullptr && !socket->has_features) {
        socket->hesitates = true;
    }
}

bool Hub::listens(std::string_view client_id) const {
    return client_id.empty() ? !sockets_.empty() : newest(client_id) != nullptr;
}

bool Hub::is_behind(std::string_view client_id) const {
    const std::size_t much = bytes_max_ / 8;
    if (!client_id.empty()) {
        const Socket* socket = newest(client_id);
        return socket != nullptr && socket->bytes > much;
    }
    return std::ranges::any_of(sockets_, [much](const SocketPtr& socket) {
        return socket->bytes > much;
    });
}

void Hub::broadcast(const std::string& text) {
    const auto frame = std::make_shared<const std::string>(text);
    for (const SocketPtr& socket : sockets_) {
        push(*socket, frame, false);
    }
}

void Hub::send(std::string_view client_id, const std::string& text) {
    if (client_id.empty()) {
        broadcast(text);
    } else if (Socket* socket = newest(client_id)) {
        push(*socket, std::make_shared<const std::string>(text), false);
    }
}

void Hub::send(std::string_view client_id, const comfy::Preview& preview) {
    FramePtr plain;
    FramePtr with_metadata;
    const auto give = [&](Socket& socket) {
        FramePtr& frame = socket.with_metadata ? with_metadata : plain;
        if (!frame) {
            frame = std::make_shared<const std::string>(
                comfy::encode_binary(preview, socket.with_metadata)
            );
        }
        push(socket, frame, true);
    };
    if (client_id.empty()) {
        for (const SocketPtr& socket : sockets_) {
            give(*socket);
        }
    } else if (Socket* socket = newest(client_id)) {
        give(*socket);
    }
}

void Hub::broadcast(const comfy::NodeText& text) {
    const auto frame = std::make_shared<const std::string>(comfy::encode_binary(text));
    for (const SocketPtr& socket : sockets_) {
        push(*socket, frame, true);
    }
}

void Hub::close() {
    closed_ = true;
    for (const SocketPtr& socket : sockets_) {
        socket->finish(Socket::End::stopped);
    }
}

Task<> Hub::serve(
    net::Exchange& exchange, std::string client_id, Greeting greeting, std::string features
) {
    if (closed_ || sockets_.size() >= sockets_max_) {
        auto sent = co_await exchange.send(comfy::error_reply(503, "too many sockets are open"));
        static_cast<void>(sent);
        co_return;
    }
    auto upgraded = co_await exchange.upgrade({});
    if (!upgraded) {
        if (!exchange.answered()) {
            auto sent = co_await exchange.send(
                comfy::text_reply(400, "This address is for WebSockets only.")
            );
            static_cast<void>(sent);
        }
        co_return;
    }
    const std::unique_ptr<net::WebSocket> connection = std::move(*upgraded);
    const auto socket = std::make_shared<Socket>(
        client_id.empty() ? new_client_id() : std::move(client_id), *connection, exchange.executor()
    );
    sockets_.push_back(socket);
    for (std::string& message : greeting(socket->client_id)) {
        push(*socket, std::make_shared<const std::string>(std::move(message)), false);
    }
    if (closed_) {
        socket->finish(Socket::End::stopped);
    }
    Conversation conversation(*this, socket, *connection, std::move(features));
    TaskGroup group(exchange.executor());
    group.spawn("socket reader", conversation.read());
    std::exception_ptr failure;
    try {
        co_await conversation.write();
        if (socket->end == Socket::End::stopped) {
            co_await connection->close(kGoingAway, "the server stops");
        }
    } catch (...) {
        failure = std::current_exception();
    }
    socket->finish(Socket::End::gone);
    std::erase(sockets_, socket);
    connection->abort();
    group.cancel();
    // join() returns early when this task is cancelled too, but the reader uses this frame.
    while (group.size() > 0) {
        co_await group.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace comfyd::standalone
