// Removes ended jobs with all that is stored of them.
//
// A job that is needed still is passed over; the cursor remembers how far a round has come, so that
// those who stay are looked at once in a round and hold up nobody.
#pragma once

#include <string>
#include <vector>

#include "jobs/ledger.hpp"
#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {

// The last job that a round has looked at.
struct PurgeCursor {
    Time finished_at{};
    JobId job{};
};

class PurgeJobs final : public ProcedureOf<jobs::Purged> {
public:
    PurgeJobs(Time before, int limit, PurgeCursor& cursor)
        : before_(before), limit_(limit), cursor_(cursor) {}
    Task<Done> run(Transaction& transaction) override;

private:
    Time before_;
    int limit_;
    PurgeCursor& cursor_;  // of the ledger; used here only
};

class DiscardJob final : public ProcedureOf<void> {
public:
    explicit DiscardJob(JobId id) : id_(id) {}
    Task<Done> run(Transaction& transaction) override;

private:
    JobId id_;
};

}  // namespace comfyd::ledger::postgres
