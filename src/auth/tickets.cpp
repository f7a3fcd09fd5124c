#include "auth/tickets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kTicketBytesMax = 4096;

// Base64 with the letters that an address takes as they are.
std::string to_address_text(std::string_view data) {
    std::string text = to_base64(data);
    text.erase(std::find(text.begin(), text.end(), '='), text.end());
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
}

std::optional<std::string> from_address_text(std::string text) {
    std::ranges::replace(text, '-', '+');
    std::ranges::replace(text, '_', '/');
    return from_base64(text);
}

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
    std::string text = to_address_text(caller.tenant) + '.' + to_address_text(caller.key_name) +
                       '.' + to_address_text(execution) + '.' +
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
    const std::string bound_to = from_address_text(parts[2]).value_or("");
    if (!bound_to.empty() && bound_to != execution) {
        return refused("is for the streams of another execution");
    }
    return Caller{
        .tenant = from_address_text(parts[0]).value_or(""),
        .key_name = from_address_text(parts[1]).value_or(""),
        .scopes = {Scope::jobs_read},
    };
}

}  // namespace comfyd::auth
