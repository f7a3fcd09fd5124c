// The right to have one content of an agent for a while, which the gateway gives to another agent:
// signed with the first one's token, which the other never sees. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::agent {

inline constexpr std::string_view kContentsPath = "/worker/v1/contents/";

// The path at that agent, with the ticket.
std::string content_address(std::string_view token, const std::string& sha256, Time until);
bool is_good_ticket(
    std::string_view token,
    std::string_view sha256,
    std::string_view until,
    std::string_view ticket,
    Time now
);

}  // namespace comfyd::agent
