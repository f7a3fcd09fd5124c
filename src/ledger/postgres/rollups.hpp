// The table of sums over ended jobs, by hour, tenant, workflow and worker: see jobs/stats.hpp. Rows
// are added to by Batch; each node has its own.
#pragma once

#include <optional>
#include <string>

#include "jobs/stats.hpp"
#include "ledger/postgres/connection.hpp"

namespace comfyd::ledger::postgres {

// The rows of whole hours. `tenant` nullopt: all.
Statement find_rollups(const std::optional<std::string>& tenant, Time first_hour, Time last_hour);
Result<> read_rollups(const Rows& rows, jobs::StatsSum& into);

}  // namespace comfyd::ledger::postgres
