// What becomes of a job when a worker is done with it: completed, tried again, failed, cancelled,
// expired. Core executor.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/task.hpp"
#include "jobs/changes.hpp"
#include "jobs/doctor.hpp"
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
        const bool& is_stopping,
        const FailurePolicy& policy
    )
        : clock_(clock),
          ledger_(ledger),
          changes_(changes),
          whereabouts_(whereabouts),
          is_stopping_(is_stopping),
          policy_(policy),
          budget_(policy.budget) {}

    void set_finishing(FinishOutputs finish) { finish_ = std::move(finish); }

    // For the fleet's budget of repetitions.
    void note_start() { budget_.note_start(clock_.now()); }
    std::uint64_t retries_held() const { return budget_.held(); }

    // Stores it, however long the storage is away. Not when the process stops: the next start
    // attaches to the worker again.
    Task<> conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome);

private:
    // What the client asked of the outputs is done to them. The worker is free meanwhile.
    Task<Result<AttemptResult>> finish(std::shared_ptr<Attempt> attempt, AttemptResult result);
    // The same for what an attempt that failed had finished; nothing where that cannot be done.
    Task<AttemptResult> finish_kept(std::shared_ptr<Attempt> attempt);
    Task<> expire_job(std::shared_ptr<Attempt> attempt);
    Task<> conclude_given_back(std::shared_ptr<Attempt> attempt, Failure failure);
    Task<> conclude_failure(std::shared_ptr<Attempt> attempt, Failure failure);
    // The attempts of the job before this one; nullopt: it is not for us to decide any more.
    Task<std::optional<std::vector<PastAttempt>>> attempts_before(std::shared_ptr<Attempt> attempt);
    Task<> settle(std::shared_ptr<Attempt> attempt, Changes::Step step);

    Clock& clock_;
    Ledger& ledger_;
    Changes& changes_;
    Whereabouts& whereabouts_;
    const bool& is_stopping_;
    const FailurePolicy policy_;
    RetryBudget budget_;
    FinishOutputs finish_;
};

}  // namespace comfyd::jobs
