// The tables of tenants and API keys.
#pragma once

#include <string>
#include <vector>

#include "auth/identity_store.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

class SaveIdentity final : public WriteOf<void> {
public:
    explicit SaveIdentity(const auth::IdentityRecord& record);
    std::size_t bytes() const override { return 128 + about_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::int64_t kind_;
    std::string id_;
    std::uint64_t revision_;
    std::string about_;
    std::size_t place_ = 0;
};

class RemoveIdentity final : public WriteOf<bool> {
public:
    RemoveIdentity(auth::IdentityKind kind, std::string id)
        : kind_(static_cast<std::int64_t>(kind)), id_(std::move(id)) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    std::int64_t kind_;
    std::string id_;
    std::size_t place_ = 0;
};

class NoteKeyUses final : public WriteOf<void> {
public:
    explicit NoteKeyUses(const auth::KeyUses& uses);
    std::size_t bytes() const override { return 64 * static_cast<std::size_t>(uses_.size()); }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    Table uses_{{kText, kInteger}};
};

Statement count_identity_changes();
// The count first: what is read may be newer than it, never older.
Statements find_all_identities();
Result<auth::AllIdentities> read_all_identities(const std::vector<Rows>& answers);

}  // namespace comfyd::ledger::postgres
