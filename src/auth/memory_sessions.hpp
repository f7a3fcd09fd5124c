// Sessions in memory, by the same contract as on disk, for tests. Any thread.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "auth/session_store.hpp"
#include "base/mutex.hpp"

namespace comfyd::auth {

class MemorySessions final : public SessionStore {
public:
    Task<Result<>> save_session(SessionRecord record, int kept_max) override {
        const Lock lock(mutex_);
        std::erase_if(records_, [&](const auto& one) {
            return one.second.ends_at <= record.used_at;
        });
        std::vector<std::pair<Time, Key>> others;
        for (const auto& [key, one] : records_) {
            if (one.kind == record.kind && one.tenant == record.tenant &&
                one.owner == record.owner) {
                others.emplace_back(one.used_at, key);
            }
        }
        std::ranges::sort(others, std::greater());
        for (std::size_t i = static_cast<std::size_t>(kept_max) - 1; i < others.size(); ++i) {
            records_.erase(others[i].second);
        }
        records_[{record.kind, record.id}] = std::move(record);
        co_return Result<>();
    }
    Task<Result<std::optional<SessionRecord>>> find_session(SessionKind kind, std::string id)
        override {
        const Lock lock(mutex_);
        const auto found = records_.find({kind, id});
        co_return found == records_.end() ? std::nullopt : std::optional(found->second);
    }
    Task<Result<std::optional<SessionRecord>>> take_session(SessionKind kind, std::string id)
        override {
        const Lock lock(mutex_);
        auto node = records_.extract({kind, id});
        co_return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
    }
    Task<Result<>> note_session_use(std::string id, Time used_at, Time ends_at) override {
        const Lock lock(mutex_);
        const auto found = records_.find({SessionKind::session, id});
        if (found != records_.end() && found->second.used_at < used_at) {
            found->second.used_at = used_at;
            found->second.ends_at = ends_at;
        }
        co_return Result<>();
    }
    Task<Result<std::vector<SessionRecord>>> list_sessions(SessionQuery query) override {
        const Lock lock(mutex_);
        std::vector<SessionRecord> listed;
        for (const auto& [key, one] : records_) {
            const bool is_wanted = one.kind == SessionKind::session && one.id > query.after &&
                                   one.ends_at > query.now &&
                                   (!query.tenant || one.tenant == *query.tenant) &&
                                   (!query.owner || one.owner == *query.owner);
            if (is_wanted && listed.size() < static_cast<std::size_t>(query.limit)) {
                listed.push_back(one);
            }
        }
        co_return listed;
    }

private:
    using Key = std::pair<SessionKind, std::string>;

    Mutex mutex_;
    std::map<Key, SessionRecord> records_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::auth
