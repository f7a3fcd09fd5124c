// An API key that was made while comfyd runs, without the key: only its SHA-256 is kept. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "auth/identity_store.hpp"
#include "auth/scopes.hpp"
#include "base/crypto.hpp"
#include "base/time.hpp"

namespace comfyd::auth {

struct KeyRecord {
    std::string id;              // the public part of the key
    std::uint64_t revision = 0;  // counts its changes
    std::string name;
    std::string tenant;
    Scopes scopes = kTenantScopes;
    Digest sha256{};
    std::optional<Digest> previous_sha256{};  // of before the latest rotation
    std::optional<Time> previous_until{};     // until when that is good as well
    Time created_at{};
    std::optional<Time> expires_at{};
    std::optional<Time> revoked_at{};
    double requests_per_minute = 0;  // 0: as its tenant may

    bool is_live(Time now) const { return !revoked_at && (!expires_at || now < *expires_at); }

    IdentityRecord to_record() const;
    // nullopt: it is not what to_record() made.
    static std::optional<KeyRecord> restore(const IdentityRecord& record);
};

}  // namespace comfyd::auth
