// Jobs that are answered with the outputs of another one instead of running: those that wait for
// one that does the same, and those whose turn comes when it has ended (docs/reuse.md). Core
// executor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/task.hpp"
#include "jobs/changes.hpp"
#include "jobs/job_table.hpp"
#include "jobs/ledger.hpp"
#include "jobs/reuse.hpp"
#include "jobs/whereabouts.hpp"

namespace comfyd::jobs {

class Answers {
public:
    // All outlive it.
    Answers(
        Clock& clock,
        Ledger& ledger,
        const JobTable& table,
        Changes& changes,
        Whereabouts& whereabouts,
        TaskGroup& tasks,
        const bool& is_stopping
    )
        : clock_(clock),
          ledger_(ledger),
          table_(table),
          changes_(changes),
          whereabouts_(whereabouts),
          tasks_(tasks),
          is_stopping_(is_stopping) {}

    void set_outputs_kept(OutputsKept kept) { outputs_kept_ = std::move(kept); }
    // Called when a job is in the queue that was not.
    void on_queued(std::function<void()> callback) { queued_ = std::move(callback); }

    // The job has ended, or where `ended` is nullptr it is lost to this process: those that waited
    // for it are answered, or the first of them goes in its place.
    void run_ended(const JobId& id, const Job* ended);
    // True: the job is completed with the outputs of another and need not run.
    Task<Result<bool>> answer_from_store(JobId id, std::string tenant, std::string reuse_key);

private:
    Task<> answer(JobId id, scheduler::JobKeys keys, std::shared_ptr<const Job> source);
    Task<Result<Job>> complete_with(JobId id, std::shared_ptr<const Job> source);

    Clock& clock_;
    Ledger& ledger_;
    const JobTable& table_;
    Changes& changes_;
    Whereabouts& whereabouts_;
    TaskGroup& tasks_;
    const bool& is_stopping_;
    OutputsKept outputs_kept_;
    std::function<void()> queued_;
};

}  // namespace comfyd::jobs
