// The tables of tenants and API keys.
#pragma once

#include <string>

#include "auth/identity_store.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct SaveIdentity {
    using Value = void;
    auth::IdentityRecord record;

    std::size_t bytes() const { return 2048; }
    Result<> operator()(Session& session);
};
struct RemoveIdentity {
    using Value = bool;
    auth::IdentityKind kind;
    std::string id;

    std::size_t bytes() const { return 128; }
    Result<bool> operator()(Session& session);
};
struct NoteKeyUses {
    using Value = void;
    auth::KeyUses uses;

    std::size_t bytes() const { return 64 * uses.size(); }
    Result<> operator()(Session& session);
};

Result<auth::AllIdentities> find_all_identities(Database& db);
Result<std::uint64_t> count_identity_changes(Database& db);

}  // namespace comfyd::ledger::sqlite
