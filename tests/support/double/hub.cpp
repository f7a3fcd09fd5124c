#include "support/double/hub.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/id.hpp"
#include "base/json.hpp"

namespace comfyd::support {

namespace {
constexpr std::size_t kWaitingBytesMax = 256 * 1024 * 1024;  // for a client that does not read
}  // namespace

struct Hub::Socket {
    explicit Socket(Executor executor, std::unique_ptr<net::WebSocket> web_socket)
        : ws(std::move(web_socket)), wake(executor) {}
    std::unique_ptr<net::WebSocket> ws;
    std::deque<net::WebSocketMessage> waiting;
    std::size_t waiting_bytes = 0;
    std::size_t written = 0;
    std::optional<std::size_t> drop_after;
    Signal wake;
    bool closed = false;
    bool preview_metadata = false;

    void close() {
        closed = true;
        ws->abort();
        wake.notify();
    }
};

void Hub::push(Socket& socket, std::string data, bool binary) {
    if (socket.closed) {
        return;
    }
    socket.waiting_bytes += data.size();
    socket.waiting.push_back({std::move(data), binary});
    if (socket.waiting_bytes > kWaitingBytesMax) {
        socket.close();
        return;
    }
    if (socket.waiting.size() == 1) {
        socket.wake.notify();
    }
}

void Hub::send(const std::string& client_id, const std::string& data, bool binary) {
    const auto found = sockets_.find(client_id);
    if (found != sockets_.end()) {
        push(*found->second, data, binary);
    }
}

void Hub::send_to_all(const std::string& data, bool binary) {
    for (const auto& [id, socket] : sockets_) {
        push(*socket, data, binary);
    }
}

bool Hub::is_behind() const {
    constexpr std::size_t kWaitingFew = 32;
    return std::any_of(sockets_.begin(), sockets_.end(), [](const auto& entry) {
        return entry.second->waiting.size() > kWaitingFew;
    });
}

bool Hub::wants_metadata(const std::string& client_id) const {
    const auto found = sockets_.find(client_id);
    return found != sockets_.end() && found->second->preview_metadata;
}

void Hub::drop_when_written(const std::string& client_id) {
    const auto found = sockets_.find(client_id);
    if (found != sockets_.end()) {
        found->second->drop_after = found->second->written + found->second->waiting.size();
        found->second->wake.notify();
    }
}

void Hub::drop_all() {
    for (const auto& weak : open_) {
        if (const auto socket = weak.lock()) {
            socket->close();
        }
    }
}

Task<> Hub::write_all(SocketPtr socket) {
    while (!socket->closed && (!socket->drop_after || socket->written < *socket->drop_after)) {
        if (socket->waiting.empty()) {
            const bool woken = co_await socket->wake.wait();
            if (!woken) {
                break;
            }
            continue;
        }
        auto message = std::move(socket->waiting.front());
        socket->waiting_bytes -= message.data.size();
        if (pause_ > Millis(0)) {
            co_await sleep_for(pause_);
        }
        auto written = co_await socket->ws->write(std::move(message.data), message.binary);
        // Removed only now: push() must not wake a writer that is busy.
        socket->waiting.pop_front();
        ++socket->written;
        if (!written) {
            break;
        }
    }
    socket->close();
}

Task<> Hub::read_all(SocketPtr socket, std::string features) {
    bool first = true;
    while (true) {
        const auto message = co_await socket->ws->read();
        if (!message) {
            co_return;
        }
        const auto document = json::parse_object(message->data);
        const auto* type = document ? json::find(*document, "type") : nullptr;
        if (first && !message->binary && type && *type == json::value("feature_flags")) {
            const auto* flags = json::find(*document, "data");
            const auto* flag = flags && flags->is_object()
                                   ? json::find(flags->get_object(), "supports_preview_metadata")
                                   : nullptr;
            socket->preview_metadata = flag && *flag == json::value(true);
            push(*socket, R"({"type": "feature_flags", "data": )" + features + "}", false);
        }
        first = false;
    }
}

Task<> Hub::serve(
    net::Exchange& exchange,
    std::string client_id,
    Greeting greeting,
    std::string features,
    TaskGroup& writers
) {
    net::WebSocketOptions options;
    options.idle_timeout = std::chrono::hours(24);  // the real server sends no pings
    auto upgraded = co_await exchange.upgrade(std::move(options));
    if (!upgraded) {
        if (!exchange.answered()) {
            net::Response refused;
            refused.status = 400;
            refused.headers.set("Content-Type", "text/plain; charset=utf-8");
            refused.body =
                "No WebSocket UPGRADE hdr: None\n Can \"Upgrade\" only to \"WebSocket\".";
            co_await exchange.send(std::move(refused));
        }
        co_return;
    }
    if (client_id.empty()) {
        client_id = Uuid::make(SystemClock().now()).to_string();
        std::erase(client_id, '-');
    }
    const auto socket = std::make_shared<Socket>(executor_, std::move(*upgraded));
    std::erase_if(open_, [](const auto& weak) { return weak.expired(); });
    open_.push_back(socket);
    // An older socket of this client stays open and hears nothing more, as at the real server.
    sockets_[client_id] = socket;
    for (auto& message : greeting(client_id)) {
        push(*socket, std::move(message), false);
    }
    writers.spawn("websocket writer", write_all(socket));
    co_await read_all(socket, std::move(features));
    // By id and not by socket: when an old socket goes, a newer one of the same client loses its
    // place too. That is the real server's behaviour, and gateways must live with it.
    sockets_.erase(client_id);
    socket->close();
}

}  // namespace comfyd::support
