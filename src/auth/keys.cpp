#include "auth/keys.hpp"

#include "base/crypto.hpp"
#include "base/text.hpp"

namespace comfyd::auth {
namespace {

constexpr std::string_view kScheme = "bearer";
constexpr std::size_t kKeyBytesMax = 4096;

// The key of "Bearer <key>"; empty when it is anything else.
std::string_view key_of(std::string_view authorization) {
    const std::string_view text = trim(authorization);
    const auto end = text.find_first_of(" \t");
    if (end == std::string_view::npos || lower(text.substr(0, end)) != kScheme) {
        return {};
    }
    const std::string_view key = trim(text.substr(end));
    return key.size() <= kKeyBytesMax ? key : std::string_view();
}

}  // namespace

Keys::Keys(const std::vector<ApiKey>& keys) {
    for (const ApiKey& key : keys) {
        known_.push_back(
            {lower(key.sha256), {key.tenant, key.name, key.is_operator ? kAllScopes : kTenantScopes}
            }
        );
    }
}

Task<Result<Caller>> Keys::authenticate(std::string_view authorization) const {
    co_return find(authorization);
}

Result<Caller> Keys::find(std::string_view authorization) const {
    if (!required()) {
        Caller local;
        local.scopes = kAllScopes;
        return local;
    }
    if (trim(authorization).empty()) {
        return fail(
            Code::unauthorized,
            "this server needs an API key: send the header 'Authorization: Bearer <key>'"
        );
    }
    const std::string_view key = key_of(authorization);
    if (key.empty()) {
        return fail(
            Code::unauthorized,
            "the Authorization header is not of the form 'Bearer <key>': only API keys are accepted"
        );
    }
    const std::string hash = hash_key(key);
    const Known* found = nullptr;
    // All of them are compared, so that the time taken does not tell which one came close.
    for (const Known& candidate : known_) {
        if (equal_constant_time(candidate.sha256, hash)) {
            found = &candidate;
        }
    }
    if (found == nullptr) {
        return fail(
            Code::unauthorized,
            "the API key is not known to this server: check it for typing errors"
        );
    }
    return found->caller;
}

}  // namespace comfyd::auth
