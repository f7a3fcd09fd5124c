#include "notify/outcome.hpp"

#include <utility>

#include "notify/backoff.hpp"

namespace comfyd::notify {

Outcome judge(const net::ClientResponse& response, Time now) {
    if (response.status >= 200 && response.status < 300) {
        return {.kind = Outcome::Kind::delivered};
    }
    std::string text = "the receiver answered HTTP " + std::to_string(response.status);
    if (response.status == 410) {
        return {.kind = Outcome::Kind::give_up, .error = text + ": it wants no more"};
    }
    if (response.status >= 300 && response.status < 400) {
        text += ": redirects are not followed";
    }
    return {
        .kind = Outcome::Kind::retry,
        .error = std::move(text),
        .retry_after = parse_retry_after(response.headers.get("Retry-After"), now),
    };
}

Outcome judge(const Error& error) {
    switch (error.code) {
        case Code::cancelled:
            return {.kind = Outcome::Kind::cancelled};
        case Code::address_refused:
        case Code::invalid_argument:
            return {.kind = Outcome::Kind::give_up, .error = error.message};
        default:
            return {.kind = Outcome::Kind::retry, .error = error.message};
    }
}

}  // namespace comfyd::notify
