#include "auth/jwt/claims.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "auth/jwt/token.hpp"
#include "auth/tenant.hpp"
#include "base/text.hpp"

namespace comfyd::auth::jwt {
namespace {

// Later than any date that a token needs, and far from the end of what a Time holds.
constexpr double kSecondsMax = 253'402'300'799;  // the year 9999
constexpr std::chrono::hours kWithoutExpiry{1};  // then it is looked at again

// Seconds since 1970. nullopt: it is not there.
Result<std::optional<Time>> date_of(const json::object& claims, const char* name) {
    const json::value* claim = claims.if_contains(name);
    if (claim == nullptr) {
        return std::nullopt;
    }
    const double seconds = claim->is_int64()    ? static_cast<double>(claim->get_int64())
                           : claim->is_uint64() ? static_cast<double>(claim->get_uint64())
                           : claim->is_double() ? std::floor(claim->get_double())
                                                : -1;
    if (!(seconds >= 0 && seconds <= kSecondsMax)) {
        return invalid_token(std::string("its '") + name + "' is no date");
    }
    return Time(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
}

Result<Time> judge_time(const json::object& claims, const ClaimRules& rules, Time now) {
    const auto expires = date_of(claims, "exp");
    const auto begins = date_of(claims, "nbf");
    const auto issued = date_of(claims, "iat");
    for (const auto* date : {&expires, &begins, &issued}) {
        if (!*date) {
            return fail(date->error());
        }
    }
    if (!*expires && rules.require_expiry) {
        return invalid_token("it has no 'exp'");
    }
    if (*expires && now >= **expires + rules.leeway) {
        return fail(Code::unauthorized, "Token has expired");
    }
    if ((*begins && now < **begins - rules.leeway) || (*issued && now < **issued - rules.leeway)) {
        return invalid_token("it is not good yet");
    }
    return *expires ? **expires + rules.leeway : now + kWithoutExpiry;
}

bool is_text(const json::value* claim, std::string_view text) {
    return claim != nullptr && claim->is_string() && view(claim->get_string()) == text;
}

bool is_for(const json::object& claims, const std::string& audience) {
    const json::value* claim = claims.if_contains("aud");
    if (claim == nullptr || !claim->is_array()) {
        return is_text(claim, audience);
    }
    const json::array& all = claim->get_array();
    return std::ranges::all_of(all, [](const json::value& one) { return one.is_string(); }) &&
           std::ranges::any_of(all, [&](const json::value& one) {
               return is_text(&one, audience);
           });
}

Result<std::string> tenant_of(const json::object& claims, const std::string& configured) {
    const json::value* claim = claims.if_contains(configured.empty() ? "user_id" : configured);
    if (claim == nullptr && configured.empty()) {
        claim = claims.if_contains("sub");
    }
    std::string name;
    if (claim != nullptr && claim->is_string()) {
        name = view(claim->get_string());
    } else if (claim != nullptr && claim->is_int64()) {
        name = std::to_string(claim->get_int64());
    }
    if (!is_tenant_name(name)) {
        return invalid_token("it does not say whose it is");
    }
    return name;
}

void add_words(Scopes& scopes, std::string_view text) {
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        scopes.add(parse_scopes(text.substr(0, end)).value_or(Scopes()));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

Result<Scopes> scopes_of(const json::object& claims, const std::string& configured) {
    const json::value* claim = claims.if_contains(configured.empty() ? "permissions" : configured);
    if (claim == nullptr && configured.empty()) {
        claim = claims.if_contains("scope");
    }
    Scopes scopes;
    bool is_empty = claim == nullptr || claim->is_null();
    if (is_empty) {
        return kTenantScopes;
    }
    if (claim->is_string()) {
        is_empty = claim->get_string().empty();
        add_words(scopes, view(claim->get_string()));
    } else if (claim->is_array()) {
        is_empty = claim->get_array().empty();
        for (const json::value& word : claim->get_array()) {
            if (!word.is_string()) {
                return invalid_token("its permissions are not texts");
            }
            add_words(scopes, view(word.get_string()));
        }
    } else {
        return invalid_token("its permissions are not a list");
    }
    return is_empty ? kTenantScopes : scopes;
}

}  // namespace

Result<Judged> judge_claims(const json::object& claims, const ClaimRules& rules, Time now) {
    const auto until = judge_time(claims, rules, now);
    if (!until) {
        return fail(until.error());
    }
    if (!rules.issuer.empty() && !is_text(claims.if_contains("iss"), rules.issuer)) {
        return invalid_token("it is of another issuer");
    }
    if (!rules.audience.empty() && !is_for(claims, rules.audience)) {
        return invalid_token("it is for another audience");
    }
    auto tenant = tenant_of(claims, rules.tenant_claim);
    if (!tenant) {
        return fail(std::move(tenant.error()));
    }
    const auto scopes = scopes_of(claims, rules.scope_claim);
    if (!scopes) {
        return fail(scopes.error());
    }
    const auto tier = json::find_string(claims, "tier");
    if (!tier) {
        return invalid_token("its 'tier' is no text");
    }
    const bool is_known = *tier && is_tier(**tier);
    const auto subject = json::find_string(claims, "sub").value_or(std::nullopt);
    Caller caller;
    caller.subject = subject.value_or(*tenant);
    caller.key_name = *tenant;
    caller.tenant = std::move(*tenant);
    caller.scopes = *scopes;
    caller.tier = is_known ? **tier : std::string(kLowestTier);
    return Judged{std::move(caller), *until};
}

}  // namespace comfyd::auth::jwt
