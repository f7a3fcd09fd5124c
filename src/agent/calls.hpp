// What an agent and the gateway that it calls must agree on.
//
// The agent opens WebSockets to the gateway, with its name and token in the handshake's headers:
// one for control, on which it reports what it is and does, and some lines that wait ("parked"),
// each of which carries one connection backwards (net/line.hpp). All of one call have the same
// session: lines of an earlier one are no more, and those are not mixed with the new.
#pragma once

#include <string_view>

#include "net/websocket.hpp"

namespace comfyd::agent {

inline constexpr std::string_view kControlRoute = "/worker/v1/control";
inline constexpr std::string_view kLineRoute = "/worker/v1/line";
inline constexpr std::string_view kInstanceHeader = "X-Comfyd-Instance";
inline constexpr std::string_view kTokenHeader = "X-Comfyd-Worker-Token";
inline constexpr std::string_view kSessionHeader = "X-Comfyd-Session";

// Pings go out at half of it: often enough for every proxy, and a line that was cut without a word
// is found to be.
inline constexpr std::chrono::seconds kSilenceMax{8};

inline net::WebSocketOptions call_options() {
    net::WebSocketOptions options;
    options.message_bytes_max = 4 * 1024 * 1024;
    options.idle_timeout = kSilenceMax;
    return options;
}

}  // namespace comfyd::agent
