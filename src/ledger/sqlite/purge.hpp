// Removes ended jobs with all that is stored of them, and gives pages back to the file system.
//
// On the writer's thread, each step a transaction of its own. A job that is needed still is passed
// over; the cursor remembers how far a round has come, so that those who stay are looked at once in
// a round and hold up nobody.
#pragma once

#include "jobs/ledger.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

#define COMFYD_ENDED_COLUMNS "id, number, tenant, state, finished_at, result"
// Here, so that a test can look at its plan.
inline constexpr char kFindEnded[] =
    "SELECT " COMFYD_ENDED_COLUMNS
    " FROM jobs INDEXED BY jobs_ended WHERE state >= 3 AND finished_at < ? AND "
    "(finished_at, id) > (?, ?) ORDER BY finished_at, id LIMIT ?";

// The last job that a round has looked at.
struct PurgeCursor {
    Time finished_at{};
    JobId job{};
};

struct PurgeJobs {
    using Value = jobs::Purged;
    Time before;
    int limit;
    PurgeCursor& cursor;  // of the ledger; used here only

    std::size_t bytes() const { return 64; }
    Result<jobs::Purged> operator()(Session& session);
};

// Of a job that is brought back to make others. What is in use elsewhere stays, by itself.
Result<> drop_outputs(Session& session, std::int64_t job_number);

struct DiscardJob {
    using Value = void;
    JobId id;

    std::size_t bytes() const { return 64; }
    Result<> operator()(Session& session);
};

}  // namespace comfyd::ledger::sqlite
