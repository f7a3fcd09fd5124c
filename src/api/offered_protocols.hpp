// The protocols that a client offers for a WebSocket, in its order. Pure.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "net/server.hpp"

namespace comfyd::api {

// The one that comfyd chooses where it is offered.
inline constexpr std::string_view kOwnProtocol = "comfyd.v1";

inline std::vector<std::string_view> offered_protocols(const net::Request& request) {
    std::vector<std::string_view> offered;
    std::string_view rest = request.headers.get("Sec-WebSocket-Protocol");
    while (!rest.empty()) {
        const auto end = std::min(rest.find(','), rest.size());
        offered.push_back(trim(rest.substr(0, end)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return offered;
}

}  // namespace comfyd::api
