// What becomes of a job when a worker is done with it: completed, tried again, failed, cancelled,
// expired. Core executor.
#pragma once

#include <memory>
#include <utility>

#include "base/task.hpp"
#include "jobs/changes.hpp"
#include "jobs/finishing.hpp"
#include "jobs/fleet.hpp"
#include "jobs/ledger.hpp"
#include "jobs/whereabouts.hpp"

namespace comfyd::jobs {

class AttemptEnd {
public:
    // All outlive it.
    AttemptEnd(
        Clock& clock,
        Ledger& ledger,
        Changes& changes,
        Whereabouts& whereabouts,
        const bool& is_stopping
    )
        : clock_(clock),
          ledger_(ledger),
          changes_(changes),
          whereabouts_(whereabouts),
          is_stopping_(is_stopping) {}

    void set_finishing(FinishOutputs finish) { finish_ = std::move(finish); }

    // Stores it, however long the storage is away. Not when the process stops: the next start
    // attaches to the worker again.
    Task<> conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome);

private:
    // What the client asked of the outputs is done to them. The worker is free meanwhile.
    Task<Result<AttemptResult>> finish(std::shared_ptr<Attempt> attempt, AttemptResult result);
    Task<> conclude_failure(std::shared_ptr<Attempt> attempt, Failure failure);
    // The engine's process has died in an attempt of this job before.
    Task<bool> has_ended_with_process(JobId id);
    Task<> settle(std::shared_ptr<Attempt> attempt, Changes::Step step);

    Clock& clock_;
    Ledger& ledger_;
    Changes& changes_;
    Whereabouts& whereabouts_;
    const bool& is_stopping_;
    FinishOutputs finish_;
};

}  // namespace comfyd::jobs
