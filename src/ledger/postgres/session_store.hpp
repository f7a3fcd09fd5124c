// The table of sessions of browsers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "auth/session_store.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

class SaveSession final : public WriteOf<void> {
public:
    SaveSession(auth::SessionRecord record, int kept_max);
    std::size_t bytes() const override { return 256 + about_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    auth::SessionRecord record_;
    std::string about_;
    int kept_max_;
};

class TakeSession final : public WriteOf<std::optional<auth::SessionRecord>> {
public:
    TakeSession(auth::SessionKind kind, std::string id)
        : kind_(static_cast<std::int64_t>(kind)), id_(std::move(id)) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::int64_t kind_;
    std::string id_;
    std::size_t place_ = 0;
};

class NoteSessionUse final : public WriteOf<void> {
public:
    NoteSessionUse(std::string id, Time used_at, Time ends_at)
        : id_(std::move(id)), used_at_(used_at), ends_at_(ends_at) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    std::string id_;
    Time used_at_;
    Time ends_at_;
};

Statement find_session(auth::SessionKind kind, const std::string& id);
Statement list_sessions(const auth::SessionQuery& query);
Result<auth::SessionRecord> read_session(const Row& row);

}  // namespace comfyd::ledger::postgres
