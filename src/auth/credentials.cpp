#include "auth/credentials.hpp"

#include <algorithm>
#include <utility>

#include "auth/api_key.hpp"
#include "base/text.hpp"

namespace comfyd::auth {
namespace {

constexpr std::string_view kScheme = "bearer";
constexpr std::size_t kCredentialBytesMax = 8 * 1024;
constexpr std::int64_t kUseEverySeconds = 60;

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

tl::unexpected<Error> unknown_key() {
    return fail(
        Code::unauthorized, "the API key is not known to this server: check it for typing errors"
    );
}

tl::unexpected<Error> disabled(const std::string& tenant) {
    return fail(
        Code::forbidden, "the tenant '" + tenant + "' is disabled; ask whoever runs this server"
    );
}

// Takes the same time whichever of the two is meant, or neither.
bool is_key_of(const KeyRecord& record, const Digest& digest, Time now) {
    const bool is_current = equal_constant_time(bytes_of(record.sha256), bytes_of(digest));
    const Digest& previous = record.previous_sha256 ? *record.previous_sha256 : record.sha256;
    const bool is_previous = equal_constant_time(bytes_of(previous), bytes_of(digest));
    return is_current || (is_previous && record.previous_until && now < *record.previous_until);
}

void note_use(KeyUse& use, Time now) {
    const std::int64_t seconds = to_unix_ms(now) / 1000;
    if (seconds >= use.load(std::memory_order_relaxed) + kUseEverySeconds) {
        use.store(seconds, std::memory_order_relaxed);
    }
}

// What an unknown id is compared with.
const KeyRecord kNobodys;

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
    auto caller = by_key(*directory, credential, digest);
    if (!caller && caller.error().code == Code::unauthorized && options_.tokens != nullptr &&
        looks_like_token(credential)) {
        caller = co_await options_.tokens->verify(credential, digest);
        const Tenant* tenant = caller ? directory->find_tenant(caller->tenant) : nullptr;
        if (tenant != nullptr && tenant->disabled) {
            co_return disabled(tenant->name);
        }
    }
    co_return caller;
}

Result<Caller> Credentials::by_key(
    const Directory& directory, std::string_view key, const Digest& digest
) const {
    std::optional<Caller> caller;
    if (const auto id = id_of_key(key)) {
        const Time now = options_.clock.now();
        const Directory::Key* known = directory.find_key(*id);
        const KeyRecord& record = known != nullptr ? known->record : kNobodys;
        const bool is_it = is_key_of(record, digest, now);
        if (known != nullptr && is_it) {
            if (!record.is_live(now)) {
                return fail(
                    Code::unauthorized,
                    record.revoked_at ? "the API key was revoked" : "the API key has expired"
                );
            }
            note_use(*known->use, now);
            caller = {record.tenant, record.name, record.scopes};
            caller->key_id = record.id;
        }
    }
    if (!caller) {
        const ApiKey* configured = directory.find_configured(digest);
        if (configured == nullptr) {
            return unknown_key();
        }
        caller = {
            configured->tenant,
            configured->name,
            configured->is_operator ? kAllScopes : kTenantScopes
        };
    }
    const Tenant* tenant = directory.find_tenant(caller->tenant);
    if (tenant != nullptr && tenant->disabled) {
        return disabled(tenant->name);
    }
    return std::move(*caller);
}

}  // namespace comfyd::auth
