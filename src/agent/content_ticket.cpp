#include "agent/content_ticket.hpp"

#include <charconv>

#include "base/crypto.hpp"

namespace comfyd::agent {
namespace {

std::string ticket_of(std::string_view token, std::string_view sha256, std::string_view until) {
    return to_hex(
        hmac_sha256(token, "comfyd content " + std::string(sha256) + " until " + std::string(until))
    );
}

}  // namespace

std::string content_address(std::string_view token, const std::string& sha256, Time until) {
    const std::string seconds = std::to_string(to_unix_ms(until) / 1'000);
    return std::string(kContentsPath) + sha256 + "?until=" + seconds +
           "&ticket=" + ticket_of(token, sha256, seconds);
}

bool is_good_ticket(
    std::string_view token,
    std::string_view sha256,
    std::string_view until,
    std::string_view ticket,
    Time now
) {
    std::int64_t seconds = 0;
    const auto read = std::from_chars(until.data(), until.data() + until.size(), seconds);
    const bool is_number = read.ec == std::errc() && read.ptr == until.data() + until.size();
    return !token.empty() && is_number && to_unix_ms(now) / 1'000 <= seconds &&
           equal_constant_time(ticket, ticket_of(token, sha256, until));
}

}  // namespace comfyd::agent
