// Internal to net: how the server and the client make WebSockets, without Beast in sight.
#pragma once

#include <memory>
#include <string>

#include "net/server.hpp"
#include "net/stream.hpp"
#include "net/websocket.hpp"

namespace comfyd::net {

// The server's hold on a WebSocket whose handler has it: for shutting down.
class WebSocketControl {
public:
    virtual ~WebSocketControl() = default;
    virtual void abort() = 0;
    // Closes with 1001 (going away); waiting reads of the handler end.
    virtual Task<> go_away() = 0;
};

struct AcceptedWebSocket {
    std::unique_ptr<WebSocket> socket;
    std::weak_ptr<WebSocketControl> control;
};

bool is_websocket_handshake(const Request& request);

// REQUIRES: is_websocket_handshake(request).
Task<Result<AcceptedWebSocket>> accept_websocket(
    Stream stream, Request request, WebSocketOptions options
);

// `stream` is connected, and TLS is up where it is used. Code::protocol_error when the server
// declines.
Task<Result<std::unique_ptr<WebSocket>>> open_websocket(
    Stream stream, Url url, WebSocketOptions options, Millis timeout, std::string user_agent
);

}  // namespace comfyd::net
