// From a job that was given to a worker to what the worker is told to do: its workflow is read, its
// start is stored. Core executor.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/task.hpp"
#include "jobs/answers.hpp"
#include "jobs/changes.hpp"
#include "jobs/fleet.hpp"
#include "jobs/forecast.hpp"
#include "jobs/job_table.hpp"
#include "jobs/ledger.hpp"

namespace comfyd::jobs {

class AttemptStart {
public:
    // All outlive it.
    AttemptStart(
        Clock& clock,
        Ledger& ledger,
        const JobTable& table,
        Changes& changes,
        const Forecast& forecast,
        Answers& answers
    )
        : clock_(clock),
          ledger_(ledger),
          table_(table),
          changes_(changes),
          forecast_(forecast),
          answers_(answers) {}

    // `webhook` is the job's own, where it wants to hear of it.
    using ProgressTold = std::function<void(const Job&, const Webhook* webhook, const Event&)>;
    void on_progress(ProgressTold callback, std::function<bool(const Job&)> is_wanted) {
        progress_told_ = std::move(callback);
        is_progress_wanted_ = std::move(is_wanted);
    }

    // Code::not_found or Code::conflict: the job has ended meanwhile, or is answered otherwise.
    Task<Result<Assignment>> begin(std::shared_ptr<Attempt> attempt, bool is_reattached);
    // running, or expired where its deadline has passed.
    Result<Change> start_job(const Job& job, const Attempt& attempt, std::uint64_t sequence) const;

private:
    Task<Result<>> read_spec(std::shared_ptr<Attempt> attempt);
    Task<Result<>> store_start(std::shared_ptr<Attempt> attempt);
    Assignment make_assignment(Attempt& attempt, bool is_reattached) const;
    void follow_progress(Attempt& attempt);

    Clock& clock_;
    Ledger& ledger_;
    const JobTable& table_;
    Changes& changes_;
    const Forecast& forecast_;
    Answers& answers_;
    ProgressTold progress_told_;
    std::function<bool(const Job&)> is_progress_wanted_;
};

}  // namespace comfyd::jobs
