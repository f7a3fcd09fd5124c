// After a back-up was put back into PostgreSQL, before any node is started over it. Tables that
// were read into another server name transactions of the one that they come from, and tables of
// an earlier day name epochs that workers have heard later ones of; both are set right here.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace comfyd::ledger {

struct Restored {
    std::uint64_t unfinished = 0;  // jobs that leaders find by this transaction now
    std::uint64_t domains = 0;     // whose next epoch is higher than any that was
};

// Blocks. All of it or nothing, and doing it again does no harm. Code::conflict while nodes use the
// database, Code::storage_unavailable, Code::schema_too_new.
Result<Restored> declare_restored(const std::string& postgres);

}  // namespace comfyd::ledger
