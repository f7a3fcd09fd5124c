#include "auth/credentials.hpp"

#include <algorithm>
#include <utility>

#include "auth/api_key.hpp"
#include "auth/known_keys.hpp"
#include "base/text.hpp"

namespace comfyd::auth {
namespace {

constexpr std::string_view kScheme = "bearer";
constexpr std::size_t kCredentialBytesMax = 8 * 1024;

// What stands behind "Bearer"; empty when it is anything else.
std::string_view credential_of(std::string_view authorization) {
    const std::string_view text = trim(authorization);
    const auto end = text.find_first_of(" \t");
    if (end != kScheme.size() ||
        !std::ranges::equal(text.substr(0, end), kScheme, {}, [](char c) { return lower(c); })) {
        return {};
    }
    const std::string_view credential = trim(text.substr(end));
    return credential.size() <= kCredentialBytesMax ? credential : std::string_view();
}

}  // namespace

Task<Result<Caller>> Credentials::authenticate(std::string_view authorization) const {
    if (!options_.required) {
        Caller local;
        local.scopes = kAllScopes;
        co_return local;
    }
    if (trim(authorization).empty()) {
        co_return fail(
            Code::unauthorized,
            "this server needs an API key: send the header 'Authorization: Bearer <key>'"
        );
    }
    const std::string_view credential = credential_of(authorization);
    if (credential.empty()) {
        co_return fail(
            Code::unauthorized,
            "the Authorization header is not of the form 'Bearer <key>': only API keys are accepted"
        );
    }
    const DirectoryPtr directory = options_.directory.now();
    const Digest digest = sha256(credential);
    auto caller = caller_of_key(*directory, id_of_key(credential), digest, options_.clock.now());
    if (!caller && caller.error().code == Code::unauthorized && options_.tokens != nullptr &&
        looks_like_token(credential)) {
        caller = co_await options_.tokens->verify(credential, digest);
        auto enabled = caller ? check_tenant_is_enabled(*directory, caller->tenant) : Result<>();
        if (!enabled) {
            co_return fail(std::move(enabled.error()));
        }
    }
    co_return caller;
}

}  // namespace comfyd::auth
