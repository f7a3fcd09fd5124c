// What an agent and the gateway that it calls must agree on.
//
// The agent opens WebSockets to the gateway, with its name and token in the handshake's headers:
// one for control, on which it reports what it is and does, and some lines that wait ("parked"),
// each of which carries one connection backwards (net/line.hpp). All of one call have the same
// session: lines of an earlier one are no more, and those are not mixed with the new.
//
// Of several nodes behind one address, or named one by one, only the one that leads the worker
// takes its calls: the others answer 503 (`lead_lost`), and the agent goes on to the next.
#pragma once

#include <string_view>

#include "net/websocket.hpp"

namespace comfyd::agent {

inline constexpr std::string_view kControlRoute = "/worker/v1/control";
inline constexpr std::string_view kLineRoute = "/worker/v1/line";
inline constexpr std::string_view kInstanceHeader = "X-Comfyd-Instance";
inline constexpr std::string_view kTokenHeader = "X-Comfyd-Worker-Token";
inline constexpr std::string_view kSessionHeader = "X-Comfyd-Session";

// Without a sign of life: the control call is over. Pings go out at half of it.
inline constexpr std::chrono::seconds kSilenceMax{8};
// Until a call is taken: then the next is tried.
inline constexpr std::chrono::seconds kCallMax{5};
// A line's pings wait behind what it carries, which on a slow way out may be many seconds; often
// enough for proxies that cut what is silent for 100 s.
inline constexpr std::chrono::seconds kLineSilenceMax{80};

inline net::WebSocketOptions control_options() {
    net::WebSocketOptions options;
    options.message_bytes_max = 4 * 1024 * 1024;
    options.idle_timeout = kSilenceMax;
    return options;
}

inline net::WebSocketOptions line_options() {
    net::WebSocketOptions options;
    options.message_bytes_max = 1024 * 1024;
    options.idle_timeout = kLineSilenceMax;
    return options;
}

}  // namespace comfyd::agent
