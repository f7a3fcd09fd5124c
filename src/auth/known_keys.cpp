#include "auth/known_keys.hpp"

#include <utility>

#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

constexpr std::int64_t kUseEverySeconds = 60;

tl::unexpected<Error> unknown_key() {
    return fail(
        Code::unauthorized, "the API key is not known to this server: check it for typing errors"
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

Result<Caller> caller_of_key(
    const Directory& directory, std::optional<std::string_view> id, const Digest& sha256, Time now
) {
    std::optional<Caller> caller;
    if (id) {
        const Directory::Key* known = directory.find_key(*id);
        const KeyRecord& record = known != nullptr ? known->record : kNobodys;
        const bool is_it = is_key_of(record, sha256, now);
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
            caller->requests_per_minute = record.requests_per_minute;
        }
    }
    if (!caller) {
        const ApiKey* configured = directory.find_configured(sha256);
        if (configured == nullptr) {
            return unknown_key();
        }
        caller = {
            configured->tenant,
            configured->name,
            configured->is_operator ? kAllScopes : kTenantScopes
        };
        caller->key_id = configured->name;
        caller->requests_per_minute = configured->requests_per_minute;
    }
    if (auto enabled = check_tenant_is_enabled(directory, caller->tenant); !enabled) {
        return fail(std::move(enabled.error()));
    }
    return std::move(*caller);
}

Result<> check_tenant_is_enabled(const Directory& directory, const std::string& tenant) {
    const Tenant* known = directory.find_tenant(tenant);
    if (known != nullptr && known->disabled) {
        return fail(
            Code::forbidden, "the tenant '" + tenant + "' is disabled; ask whoever runs this server"
        );
    }
    return {};
}

}  // namespace comfyd::auth
