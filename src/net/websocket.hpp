// One WebSocket connection, server or client side. All members on the executor that it was made on.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "net/http.hpp"

namespace comfyd::net {

struct WebSocketOptions {
    std::size_t message_bytes_max = 4 * 1024 * 1024;
    // Pings are sent at half of it; no pong: the connection is dead.
    std::chrono::seconds idle_timeout{300};
    Headers headers{};  // added to the handshake
};

struct WebSocketMessage {
    std::string data;
    bool binary = false;
};

class WebSocket {
public:
    virtual ~WebSocket() = default;  // closes the socket at once if close() did not

    // One reader and one writer at a time; both may wait at once. Code::connection_failed when the
    // peer closed or is gone, Code::cancelled when the calling task was cancelled or close() was
    // called here.
    virtual Task<Result<WebSocketMessage>> read() = 0;
    virtual Task<Result<>> write(std::string data, bool binary) = 0;
    virtual Task<> close(unsigned short code, std::string reason) = 0;
    // Drops the connection without a handshake; a waiting read() or write() returns at once.
    virtual void abort() = 0;
};

}  // namespace comfyd::net
