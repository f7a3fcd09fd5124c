#include "auth/tickets.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "auth/jwt/base64url.hpp"
#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

using jwt::from_base64url;
using jwt::to_base64url;

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kTicketBytesMax = 4096;

tl::unexpected<Error> refused(const char* why) {
    return fail(
        Code::unauthorized,
        std::string("the stream ticket ") + why + "; get a new one by POST /v2/stream-tickets"
    );
}

}  // namespace

Tickets::Tickets(Millis lifetime) : secret_(kSecretBytes, '\0'), lifetime_(lifetime) {
    random_bytes(secret_.data(), secret_.size());
}

std::string Tickets::sign(std::string_view text) const {
    return to_hex(hmac_sha256(secret_, text));
}

// "tenant.key.execution.expiry.signature", the names in base64.
Tickets::Ticket Tickets::issue(const Caller& caller, std::string_view execution, Time now) const {
    const auto expires_at = std::chrono::ceil<std::chrono::seconds>(now + lifetime_);
    std::string text = to_base64url(caller.tenant) + '.' + to_base64url(caller.key_name) + '.' +
                       to_base64url(execution) + '.' +
                       std::to_string(expires_at.time_since_epoch().count());
    text += '.' + sign(text);
    return {std::move(text), expires_at};
}

Result<Caller> Tickets::redeem(std::string_view ticket, std::string_view execution, Time now)
    const {
    const auto last_dot = ticket.rfind('.');
    const bool is_ours =
        ticket.size() <= kTicketBytesMax && last_dot != std::string_view::npos &&
        equal_constant_time(ticket.substr(last_dot + 1), sign(ticket.substr(0, last_dot)));
    if (!is_ours) {
        return refused("is not one of this server");
    }
    std::vector<std::string> parts;
    for (std::string_view rest = ticket; parts.size() < 4;) {
        const auto dot = rest.find('.');
        parts.emplace_back(rest.substr(0, dot));
        rest.remove_prefix(dot + 1);
    }
    std::int64_t expires_s = 0;
    std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), expires_s);
    if (now >= Time(std::chrono::seconds(expires_s))) {
        return refused("has expired");
    }
    const std::string bound_to = from_base64url(parts[2]).value_or("");
    if (!bound_to.empty() && bound_to != execution) {
        return refused("is for the streams of another execution");
    }
    return Caller{
        .tenant = from_base64url(parts[0]).value_or(""),
        .key_name = from_base64url(parts[1]).value_or(""),
        .scopes = {Scope::jobs_read},
    };
}

}  // namespace comfyd::auth
