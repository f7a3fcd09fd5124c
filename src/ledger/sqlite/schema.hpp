// The tables, as a list of numbered steps. A database remembers the number of its last step (PRAGMA
// user_version); on start the missing ones are run, each in its own transaction. A step that was
// released is never edited.
#pragma once

#include <span>
#include <string_view>

#include "base/error.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

struct Migration {
    int version;  // 1, 2, 3 …
    std::string_view script;
    Result<> (*then)(Database& db) = nullptr;  // in the same transaction, what a script cannot do
};

std::span<const Migration> migrations();

// Code::schema_too_new when the database was made by a newer comfyd; Code::storage_unavailable when
// it is not one of comfyd's.
Result<> migrate(Database& db, std::span<const Migration> steps);

// What the numbers in outbox.state mean.
enum class OutboxState { due = 0, blocked = 1, delivered = 2, dead = 3 };

}  // namespace comfyd::ledger::sqlite
