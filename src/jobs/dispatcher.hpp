// Owns every unfinished job of a domain and the parts that work on them: Whereabouts says where
// each job is, Changes changes it in the ledger, Ranking and Placement tell the scheduler of jobs
// and of workers, Batches begins what it decides, Attempts follow it, Answers spare runs, Dues
// are what Alarms wake for, Forecast says how long things take, Preparing has models fetched,
// Warming has them loaded ahead of jobs.
//
// Lives on the core executor; every member is called there. Only keys of waiting jobs are in
// memory; workflows are read back from the ledger when a job is placed. A change becomes visible
// (events, answers) only after the ledger has it.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/alarms.hpp"
#include "jobs/answers.hpp"
#include "jobs/attempt_end.hpp"
#include "jobs/attempt_start.hpp"
#include "jobs/attempts.hpp"
#include "jobs/backlog.hpp"
#include "jobs/batches.hpp"
#include "jobs/changes.hpp"
#include "jobs/doctor.hpp"
#include "jobs/dues.hpp"
#include "jobs/fleet.hpp"
#include "jobs/forecast.hpp"
#include "jobs/job.hpp"
#include "jobs/job_table.hpp"
#include "jobs/ledger.hpp"
#include "jobs/load.hpp"
#include "jobs/newcomers.hpp"
#include "jobs/placement.hpp"
#include "jobs/preparing.hpp"
#include "jobs/publisher.hpp"
#include "jobs/ranking.hpp"
#include "jobs/warming.hpp"
#include "jobs/whereabouts.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

class Dispatcher {
public:
    // All outlive it.
    struct Parts {
        Executor core;
        Clock& clock;
        Ledger& ledger;
        Fleet& fleet;
        events::Hub& hub;
        scheduler::Predictor& predictor;
        Backlog& backlog;
        SharedLedger* shared = nullptr;  // with other nodes; nullptr: with none
        std::string domain = "main";
        const Clock* pace = nullptr;  // that nobody sets; nullptr: `clock` is such
    };
    Dispatcher(const Parts& parts, scheduler::Options options, const FailurePolicy& failures = {});
    ~Dispatcher();

    void start();
    Task<Result<>> recover();
    // Running attempts are left on their workers (or finish within `grace`).
    Task<> stop(Millis grace);

    // A job that was just accepted. It starts with start_waiting(): those that come together are
    // placed together.
    void enqueue(
        const Job& job,
        scheduler::ProfilePtr profile,
        json::object secret_extra_data,
        std::uint64_t content,
        events::Arrived::How how = events::Arrived::How::accepted
    );
    void start_waiting() { pump(); }
    // Other nodes may have left something in the ledger.
    void look_for_newcomers();
    // What they left there longer ago than this is found.
    Millis lag() const { return newcomers_ ? newcomers_->lag() : Millis(0); }
    // What operators want of workers; the rest is done here.
    void on_wish(std::function<void(const Wish&)> callback) { wish_ = std::move(callback); }
    // With nothing waiting and a worker free, the start of a job goes into the transaction that
    // accepts it: one wait for the disk instead of two. nullopt: it has to wait its turn, `job` is
    // as it was.
    Task<std::optional<Result<Accepted>>> accept_at_once(NewJob& job);
    // A job that was just accepted and completed in one step, with the outputs of another.
    void accepted_with_outputs(const Job& queued, const Change& completed);
    // Code::conflict when the job is not in a state for it (any more).
    Task<Result<>> cancel(JobId id);
    // The same for a job that no worker has: Code::conflict as soon as one does.
    Task<Result<>> cancel_waiting(JobId id);
    Task<Result<>> retry(JobId id);

    using Live = Forecast::Live;
    Live live(const JobId& id) const;
    // The same of a job that is about to be accepted.
    Live outlook(const Job& job, scheduler::ProfilePtr profile);
    // The latest progress and preview of a running job, as events.
    std::vector<events::EventPtr> latest(const JobId& id) const;

    // Why a job waits; nullopt: it does not.
    std::optional<scheduler::Explanation> explain(const JobId& id) const;
    // What waits, and what the workers do.
    Load load() const;
    // Before recover(), and at any time after it. Without classifying, jobs keep the priority that
    // was asked for.
    void set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify);
    void set_terms_of(TermsOf terms) { ranking_.set_terms_of(std::move(terms)); }
    const Fleet& fleet() const { return fleet_; }
    // Asks every worker that runs nothing to give memory back.
    Task<bool> free_idle_workers(bool models, bool results);

    Warming& warming() { return warming_; }

    // Where a job runs now; nullptr: nowhere, or its end is being stored.
    std::shared_ptr<Worker> worker_of(const JobId& id) const;

    std::array<std::size_t, scheduler::kWaitClasses> queued_by_class() const;
    std::size_t queued_count() const { return table_.queued_count(); }
    // The job that this one waits for, because it does the same; nullopt: for none.
    std::optional<JobId> waits_for(const JobId& id) const { return whereabouts_.leader_of(id); }
    std::size_t running_count() const { return table_.attempt_count(); }
    std::size_t waiting_count() const { return table_.retry_waiting_count(); }
    // Attempts that the fleet's budget of repetitions has put off, since the start.
    std::uint64_t retries_held() const { return ends_.retries_held(); }
    std::size_t unfinished(const std::string& tenant) const {
        return publisher_.unfinished(tenant);
    }

    // Before recover().
    void set_outputs_kept(OutputsKept kept) { answers_.set_outputs_kept(std::move(kept)); }
    void on_change(std::function<void(const Job&, const Event&)> callback) {
        changed_ = std::move(callback);
    }
    void set_finishing(FinishOutputs finish) { ends_.set_finishing(std::move(finish)); }
    using ProgressTold = AttemptStart::ProgressTold;
    void on_progress(ProgressTold callback, std::function<bool(const Job&)> is_wanted) {
        starts_.on_progress(std::move(callback), std::move(is_wanted));
    }
    void on_finished(std::function<void(const Job&)> callback) { finished_ = std::move(callback); }
    void on_used(std::function<void(const Job&, const Usage&)> callback) {
        used_ = std::move(callback);
    }
    void on_attempt_failed(std::function<void(const Job&, Cause)> callback) {
        attempt_failed_ = std::move(callback);
    }

private:
    // The next of the jobs that had not ended, after this one; empty: there are no more.
    Task<Result<std::vector<Unfinished>>> read_back(std::optional<JobId> after);
    bool knows(const JobId& id) const;
    void take_in(
        const Job& job,
        scheduler::ProfilePtr profile,
        std::uint64_t content = 0,
        events::Arrived::How how = events::Arrived::How::accepted
    );
    Task<> fulfil(Wish wish);
    void pump();
    void update_workers();
    void committed(const Change& change);

    Executor core_;
    Clock& clock_;
    Ledger& ledger_;
    Fleet& fleet_;
    bool stopping_ = false;
    // What is done at a change of the fleet, which may outlive us.
    using OnFleet = std::function<void(const std::set<std::string>& workers)>;
    std::shared_ptr<OnFleet> on_fleet_ = std::make_shared<OnFleet>();
    std::function<void(const Job&, const Event&)> changed_;
    std::function<void(const Job&)> finished_;
    std::function<void(const Job&, const Usage&)> used_;
    std::function<void(const Job&, Cause)> attempt_failed_;
    std::function<void(const Wish&)> wish_;

    // Each may use those above it.
    TaskGroup tasks_;
    Publisher publisher_;
    Alarms alarms_;
    JobTable table_;
    Placement placement_;
    scheduler::Scheduler& scheduler_;  // the placement's
    Forecast forecast_;
    Ranking ranking_;
    Changes changes_;
    Whereabouts whereabouts_;
    Answers answers_;
    AttemptStart starts_;
    AttemptEnd ends_;
    Attempts attempts_;
    Batches batches_;
    Dues dues_;
    Preparing preparing_;
    Warming warming_;
    std::optional<Newcomers> newcomers_;
};

}  // namespace comfyd::jobs
