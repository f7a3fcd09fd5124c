#include "auth/directory.hpp"

#include <utility>

#include "base/log.hpp"

namespace comfyd::auth {

Directory::Directory(
    const std::vector<ApiKey>& configured_keys,
    const std::vector<Tenant>& configured_tenants,
    const AllIdentities& stored,
    const Directory& before
)
    : changes_(stored.changes), configured_(configured_keys) {
    for (std::size_t i = 0; i < configured_.size(); ++i) {
        if (const auto digest = parse_digest(configured_[i].sha256)) {
            by_digest_.emplace(*digest, i);
        }
    }
    for (const Tenant& tenant : configured_tenants) {
        tenants_.emplace(tenant.name, tenant);
    }
    for (const IdentityRecord& record : stored.records) {
        if (record.kind == IdentityKind::tenant) {
            tenants_.emplace(record.id, Tenant::restore(record));
            continue;
        }
        auto restored = KeyRecord::restore(record);
        if (!restored) {
            log::warning("an API key of the ledger cannot be read", {{"key", record.id}});
            continue;
        }
        Key key{std::move(*restored)};
        if (const Key* known = before.find_key(record.id)) {
            key.use = known->use;
        }
        if (const auto used = stored.uses.find(record.id); used != stored.uses.end()) {
            key.last_used_at = used->second;
        }
        keys_.emplace(record.id, std::move(key));
    }
    for (const auto& [id, key] : keys_) {
        by_id_.emplace(id, &key);
    }
}

const Directory::Key* Directory::find_key(std::string_view id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

const ApiKey* Directory::find_configured(const Digest& sha256) const {
    const auto found = by_digest_.find(sha256);
    return found == by_digest_.end() ? nullptr : &configured_[found->second];
}

const Tenant* Directory::find_tenant(std::string_view name) const {
    const auto found = tenants_.find(name);
    return found == tenants_.end() ? nullptr : &found->second;
}

}  // namespace comfyd::auth
