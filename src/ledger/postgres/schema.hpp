// The tables, as a list of numbered steps. The table schema_version remembers the last one; on
// start the missing ones are run by one node while others wait. A step that was released is never
// edited.
//
// A step that only adds lets binaries from before it go on: oldest_reader says from which version
// on a binary can work with the tables. So nodes are replaced one by one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::ledger::postgres {

struct Migration {
    int version;  // 1, 2, 3 …
    int oldest_reader;
    std::string_view script;
};

std::span<const Migration> migrations();

// Blocks. Code::schema_too_new when a newer comfyd made the tables and this one cannot work with
// them; Code::storage_unavailable.
Result<> migrate(const std::string& conninfo, std::span<const Migration> steps);

// What the numbers in outbox.state mean.
enum class OutboxState { pending = 0, delivered = 2, dead = 3 };

// What advisory locks are for, as the first of their two numbers.
enum class LockClass { migration = 0x636F6D66, slot, lead, housekeeping };

}  // namespace comfyd::ledger::postgres
