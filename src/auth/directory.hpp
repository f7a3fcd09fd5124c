// Every tenant and key there is, of the configuration and of the ledger: a value that never changes
// and is replaced as a whole. Whoever asks keeps what held when it asked.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "auth/authenticator.hpp"
#include "auth/digest.hpp"
#include "auth/key_record.hpp"
#include "auth/tenant.hpp"
#include "base/mutex.hpp"
#include "base/time.hpp"

namespace comfyd::auth {

// When a key was used, in seconds since 1970; 0: not since it is known here. One for all
// directories that have the key. Written by those who authenticate, at most once a minute.
using KeyUse = std::atomic<std::int64_t>;

class Directory {
public:
    struct Key {
        KeyRecord record;
        std::optional<Time> last_used_at{};  // as the ledger has it
        std::shared_ptr<KeyUse> use = std::make_shared<KeyUse>(0);
    };

    Directory() = default;
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    // `before`: whose uses are carried on. A tenant of the configuration hides one of the ledger.
    Directory(
        const std::vector<ApiKey>& configured_keys,
        const std::vector<Tenant>& configured_tenants,
        const AllIdentities& stored,
        const Directory& before
    );

    // nullptr: there is none.
    const Key* find_key(std::string_view id) const;
    const ApiKey* find_configured(const Digest& sha256) const;
    const Tenant* find_tenant(std::string_view name) const;

    const std::vector<ApiKey>& configured_keys() const { return configured_; }
    const std::map<std::string, Key, std::less<>>& keys() const { return keys_; }
    const std::map<std::string, Tenant, std::less<>>& tenants() const { return tenants_; }
    std::uint64_t changes() const { return changes_; }

private:
    std::uint64_t changes_ = 0;  // of the ledger's, when it was read
    std::vector<ApiKey> configured_;
    std::unordered_map<Digest, std::size_t, DigestHash> by_digest_;  // into configured_
    std::map<std::string, Key, std::less<>> keys_;
    std::unordered_map<std::string_view, const Key*> by_id_;  // of keys_
    std::map<std::string, Tenant, std::less<>> tenants_;
};
using DirectoryPtr = std::shared_ptr<const Directory>;

// The one that holds now. Any thread.
class DirectoryBoard {
public:
    explicit DirectoryBoard(DirectoryPtr first) : now_(std::move(first)) {}

    DirectoryPtr now() const {
        const Lock lock(mutex_);
        return now_;
    }
    void set(DirectoryPtr next) {
        const Lock lock(mutex_);
        now_.swap(next);
    }

private:
    mutable Mutex mutex_;
    DirectoryPtr now_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::auth
