// The table of sessions of browsers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "auth/session_store.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct SaveSession {
    using Value = void;
    auth::SessionRecord record;
    int kept_max;

    std::size_t bytes() const { return 1024; }
    Result<> operator()(Session& session);
};
struct TakeSession {
    using Value = std::optional<auth::SessionRecord>;
    auth::SessionKind kind;
    std::string id;

    std::size_t bytes() const { return 128; }
    Result<std::optional<auth::SessionRecord>> operator()(Session& session);
};
struct NoteSessionUse {
    using Value = void;
    std::string id;
    Time used_at;
    Time ends_at;

    std::size_t bytes() const { return 64; }
    Result<> operator()(Session& session);
};

Result<std::optional<auth::SessionRecord>> find_session(
    Database& db, auth::SessionKind kind, const std::string& id
);
Result<std::vector<auth::SessionRecord>> list_sessions(
    Database& db, const auth::SessionQuery& query
);

}  // namespace comfyd::ledger::sqlite
