// Moves a ledger from SQLite into PostgreSQL: all of it, in one transaction, into tables that are
// empty. Whatever goes wrong, PostgreSQL is as it was, and the copy can be begun anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::ledger {

// Blocks. `secret`: the cluster's, which secrets of clients are sealed with. `tell` hears after
// every piece how many rows of a table have gone over. Code::conflict when there is something in
// PostgreSQL already; Code::config_invalid without a secret; Code::storage_unavailable, also while
// a server uses the SQLite file.
Result<> copy_ledger(
    const std::filesystem::path& sqlite,
    const std::string& postgres,
    const std::string& secret,
    Clock& clock,
    const std::function<void(std::string_view table, std::uint64_t rows)>& tell
);

}  // namespace comfyd::ledger
