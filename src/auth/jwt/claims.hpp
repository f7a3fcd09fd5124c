// What a token says of its holder, judged: for whom and by whom it was made, from when and until
// when it is good, whose it is and what they may do. Pure.
#pragma once

#include <chrono>
#include <string>

#include "auth/authenticator.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::auth::jwt {

struct ClaimRules {
    std::string issuer{};        // empty: not asked for; else byte for byte
    std::string audience{};      // likewise
    std::string tenant_claim{};  // empty: user_id, or else sub
    std::string scope_claim{};   // empty: permissions, or else scope
    std::chrono::seconds leeway{60};
    bool require_expiry = true;
};

struct Judged {
    Caller caller;
    Time good_until;
};

// Code::unauthorized. A token that names no permissions has those of its tenant; words that are not
// ours are passed over.
Result<Judged> judge_claims(const json::object& claims, const ClaimRules& rules, Time now);

}  // namespace comfyd::auth::jwt
