// Identities in memory, by the same contract as on disk, for tests. Any thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "auth/identity_store.hpp"
#include "base/mutex.hpp"

namespace comfyd::auth {

class MemoryIdentities final : public IdentityStore {
public:
    Task<Result<>> save_identity(IdentityRecord record) override {
        const Lock lock(mutex_);
        const auto key = std::pair(record.kind, record.id);
        const auto stored = records_.find(key);
        const std::uint64_t revision = stored == records_.end() ? 0 : stored->second.revision;
        if (revision + 1 != record.revision) {
            co_return fail(Code::conflict, "it was changed meanwhile");
        }
        records_[key] = std::move(record);
        ++changes_;
        co_return Result<>();
    }
    Task<Result<bool>> remove_identity(IdentityKind kind, std::string id) override {
        const Lock lock(mutex_);
        const bool was_there = records_.erase({kind, id}) > 0;
        changes_ += was_there ? 1 : 0;
        if (kind == IdentityKind::key) {
            uses_.erase(id);
        }
        co_return was_there;
    }
    Task<Result<AllIdentities>> all_identities() override {
        const Lock lock(mutex_);
        AllIdentities all{changes_, {}, uses_};
        for (const auto& [key, record] : records_) {
            all.records.push_back(record);
        }
        co_return all;
    }
    Task<Result<std::uint64_t>> identity_changes() override {
        const Lock lock(mutex_);
        co_return changes_;
    }
    Task<Result<>> note_key_uses(KeyUses uses) override {
        const Lock lock(mutex_);
        for (const auto& [id, used_at] : uses) {
            if (records_.contains({IdentityKind::key, id})) {
                uses_[id] = std::max(uses_[id], used_at);
            }
        }
        co_return Result<>();
    }

private:
    Mutex mutex_;
    std::uint64_t changes_ COMFYD_GUARDED_BY(mutex_) = 0;
    std::map<std::pair<IdentityKind, std::string>, IdentityRecord> records_ COMFYD_GUARDED_BY(mutex_
    );
    KeyUses uses_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::auth
