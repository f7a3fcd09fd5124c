// Owns every unfinished job of the process: places queued ones on workers, follows attempts,
// retries, expires, cancels.
//
// Where each job is says its JobTable; Changes changes them in the ledger, Placement tells the
// scheduler of workers, Alarms wakes it, Forecast says how long things take.
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
#include <string>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/alarms.hpp"
#include "jobs/changes.hpp"
#include "jobs/fleet.hpp"
#include "jobs/forecast.hpp"
#include "jobs/job.hpp"
#include "jobs/job_table.hpp"
#include "jobs/ledger.hpp"
#include "jobs/placement.hpp"
#include "jobs/reuse.hpp"
#include "jobs/tenants.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// The profile of a job; where none was made, one that says what the job requires and no more.
scheduler::ProfilePtr known_profile(scheduler::ProfilePtr profile, const std::string& requirement);

// For scheduler::JobKeys; the same in one process only.
std::uint64_t content_of(const Spec& spec);

class Dispatcher {
public:
    Dispatcher(
        Executor core,
        Clock& clock,
        Ledger& ledger,
        Fleet& fleet,
        events::Hub& hub,
        scheduler::Options options
    );
    ~Dispatcher();

    void start();
    Task<Result<>> recover();
    Task<> stop(Millis grace);

    // A job that was just accepted. It starts with start_waiting(): those that come together are
    // placed together.
    void enqueue(
        const Job& job,
        scheduler::ProfilePtr profile,
        json::object secret_extra_data,
        std::uint64_t content
    );
    void start_waiting() { pump(); }
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
    Live live(const JobId& id) const { return forecast_.live(id); }
    // The same of a job that is about to be accepted.
    Live outlook(const Job& job, scheduler::ProfilePtr profile);
    // The latest progress and preview of a running job, as events.
    std::vector<events::EventPtr> latest(const JobId& id) const;

    // Why a job waits; nullopt: it does not.
    std::optional<scheduler::Explanation> explain(const JobId& id) const;
    // Before recover(). Without classifying, jobs keep the priority that was asked for.
    void set_tenants(const std::map<std::string, TenantOptions>& tenants, bool classify);
    // What a worker has loaded is gone.
    void forget_models(const std::string& worker) { scheduler_.forget_models(worker); }
    // What was learned of run times, for whoever keeps it over a restart.
    scheduler::Predictor& predictor() { return placement_.predictor(); }

    // Where a job runs now; nullptr: nowhere, or its end is being stored.
    std::shared_ptr<Worker> worker_of(const JobId& id) const;

    // Waiting jobs of this rank or a higher one: their priority, or 0 of the batch class. Any
    // thread.
    std::size_t queued_at_least(int rank) const { return table_.queued_at_least(rank); }
    std::array<std::size_t, scheduler::kWaitClasses> queued_by_class() const;
    std::size_t queued_count() const { return table_.queued_count(); }
    // The job that this one waits for, because it does the same; nullopt: for none.
    std::optional<JobId> waits_for(const JobId& id) const { return in_flight_.followed_by(id); }
    std::size_t running_count() const { return table_.attempt_count(); }
    std::size_t waiting_count() const { return table_.retry_waiting_count(); }
    // stop() has ended: nothing will be told any more.
    bool is_over() const { return is_over_; }

    // Before recover().
    void set_outputs_kept(OutputsKept kept) { outputs_kept_ = std::move(kept); }
    void on_webhook(std::function<void(const Event&)> callback) { webhook_ = std::move(callback); }
    using ProgressTold = std::function<void(const Job&, const Webhook&, const Event&)>;
    void on_progress(ProgressTold callback) { progress_told_ = std::move(callback); }
    void on_finished(std::function<void(const Job&)> callback) { finished_ = std::move(callback); }
    void on_used(std::function<void(const std::string& worker, const Usage&)> callback) {
        used_ = std::move(callback);
    }

private:
    using Step = Changes::Step;

    void pump();
    void update_workers();
    // With the priority that the job has by what is known now.
    scheduler::JobKeys make_keys(const Job& job, scheduler::ProfilePtr profile) const;
    Task<> recall_usage();
    std::shared_ptr<Attempt> make_attempt(
        const scheduler::Decision& decision, std::shared_ptr<Worker> worker
    );
    void launch(const scheduler::Decision& decision);
    void launch(
        std::shared_ptr<Attempt> attempt, std::shared_ptr<RunGroup> group, SharedRun shared
    );
    void put_riders_back(const scheduler::Decision& decision);
    // Jobs that ran as one prompt when the process ended.
    struct FoundAgain {
        Job job;
        scheduler::ProfilePtr profile;
    };
    void count_running(const std::vector<FoundAgain>& together);
    void reattach_groups(std::vector<FoundAgain> found);
    Result<Change> start_job(const Job& job, const Attempt& attempt, std::uint64_t sequence) const;
    void follow_progress(Attempt& attempt);
    void reattach(
        Job job, scheduler::ProfilePtr profile, std::shared_ptr<RunGroup> group = nullptr
    );
    Task<> run_attempt(std::shared_ptr<Attempt> attempt, bool is_reattached);
    // It never began.
    void give_back(const std::shared_ptr<Attempt>& attempt, const Error& why);
    Task<Result<Assignment>> begin(std::shared_ptr<Attempt> attempt, bool is_reattached);
    Task<> conclude(std::shared_ptr<Attempt> attempt, Result<AttemptResult> outcome);
    // The process has died in an attempt of this job before.
    Task<bool> has_ended_with_process(JobId id);
    Task<> settle(std::shared_ptr<Attempt> attempt, Step step);
    void ring(const JobId& id, Time now);
    Task<> requeue_now(JobId id);
    Task<> expire_now(JobId id);
    static std::size_t rank_of(const scheduler::JobKeys& keys) {
        return keys.batch ? 0 : static_cast<std::size_t>(keys.priority);
    }
    void queue_up(const Job& job, scheduler::JobKeys keys);
    void overtake(const JobId& leader, const Job& job);
    void lead_running(const Job& job);
    void leave_run(const JobId& id, const Job* ended);
    Task<> finish_follower(JobId id, scheduler::JobKeys keys, std::shared_ptr<const Job> source);
    // True: the job is completed with the outputs of another and need not run.
    Task<Result<bool>> answer_from_store(std::shared_ptr<Attempt> attempt);
    // Where a job is from now on, wherever it was.
    void make_ready(const JobId& id, scheduler::JobKeys keys);
    void make_following(const Job& job, scheduler::JobKeys keys);
    void make_retry_waiting(const JobId& id, Time not_before, scheduler::JobKeys keys);
    void make_attempting(std::shared_ptr<Attempt> attempt);
    void leave(const JobId& id);
    void put_back(const Job& job, scheduler::ProfilePtr profile, std::uint64_t content = 0);
    void remember_deadline(const Job& job);
    void committed(const Change& change);
    void announce(const Job& job, bool is_new);
    void forget(const JobId& id);

    Executor core_;
    Clock& clock_;
    Ledger& ledger_;
    Fleet& fleet_;
    events::Hub& hub_;
    TaskGroup tasks_;
    Alarms alarms_;

    JobTable table_;
    Placement placement_;
    scheduler::Scheduler& scheduler_;  // the placement's
    Forecast forecast_;
    Changes changes_;
    std::optional<Tenants> tenants_;  // nullopt: jobs are not classified
    InFlight in_flight_;
    OutputsKept outputs_kept_;
    bool stopping_ = false;
    bool is_over_ = false;

    std::function<void(const Event&)> webhook_;
    ProgressTold progress_told_;
    std::function<void(const Job&)> finished_;
    std::function<void(const std::string&, const Usage&)> used_;
};

}  // namespace comfyd::jobs
