// The table of sums over ended jobs, by hour, tenant, workflow and worker: see jobs/stats.hpp.
//
// Rollups collects what the changes of a batch add and writes each row once per transaction. Lives
// on the writer thread as long as the writer.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/time.hpp"
#include "jobs/stats.hpp"
#include "ledger/rollup_names.hpp"
#include "ledger/sqlite/database.hpp"

namespace comfyd::ledger::sqlite {

class Rollups {
public:
    // Once for each connection that writes.
    static Result<> prepare(Database& db);

    void add(jobs::StatsEntry entry);
    Result<> write(Database& db, Time now);
    // The batch failed, or is written.
    void clear() { changes_.clear(); }

private:
    Result<> drop_old(Database& db, Time now);

    std::map<jobs::StatsKey, jobs::Totals> changes_;
    RollupNames names_;
    bool may_have_old_ = true;
};

// The rows of whole hours, the latest first. `tenant` nullopt: all.
Result<> read_rollups(
    Database& db,
    const std::optional<std::string>& tenant,
    Time first_hour,
    Time last_hour,
    jobs::StatsSum& into
);

}  // namespace comfyd::ledger::sqlite
