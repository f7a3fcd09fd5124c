// The one door to jobs: every dialect submits, reads, lists, cancels and watches through it.
//
// Jobs are run by the node that leads their domain. A program of its own leads all there is, from
// its start to its end; of nodes that share a ledger each asks the leader for what it does not
// lead.
//
// Thread rules: all members may be awaited on any executor and continue there. State lives on the
// core executor. A submit is answered after it is durable. Ids of jobs that belong to another
// tenant answer not_found.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/doctor.hpp"
#include "jobs/finishing.hpp"
#include "jobs/fleet.hpp"
#include "jobs/job.hpp"
#include "jobs/leader.hpp"
#include "jobs/ledger.hpp"
#include "jobs/load.hpp"
#include "jobs/reuse.hpp"
#include "jobs/shared_ledger.hpp"
#include "jobs/tenants.hpp"
#include "jobs/warming.hpp"
#include "scheduler/predictor.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

struct ServiceOptions {
    std::size_t queue_max = 1'000'000;  // more waiting jobs than this: Code::queue_full
    scheduler::Options scheduling{};
    std::map<std::string, TenantOptions> tenants{};
    // Of tenants that are not named there, and where a token named a tier. Any thread; none: they
    // share evenly and have no limits.
    TermsOf terms_of{};
    // Asked before a job comes in. What it gives is kept until the job is stored, so that no two
    // take the same place. None: all may. Any thread.
    using Permit = std::shared_ptr<void>;
    std::function<Task<Result<Permit>>(std::string tenant, std::string tier)> permit{};
    bool classify = true;        // the priority asked for is weighed with what is known of a job
    OutputsKept outputs_kept{};  // none: they are taken to be there
    FinishOutputs finish_outputs{};  // none: they stay as the worker made them
    FailurePolicy failures{};
    std::map<std::string, std::string, std::less<>> domains{};  // of pools; those not named: main
    const Clock* pace = nullptr;  // that nobody sets; nullptr: the service's is such. Outlives it
};

// A job and what only the running process knows of it.
struct View {
    Job job;
    std::optional<Progress> progress;     // while running
    std::optional<int> queue_position;    // 1 = next; while queued
    std::optional<int> estimated_wait_s;  // while queued, when there is something to estimate from
    std::optional<int> estimated_remaining_s;   // while queued or running, likewise
    std::optional<double> estimate_confidence;  // 0..1, of it while running
};

struct Submitted {
    View view;
    bool replayed =
        false;  // an earlier request with the same idempotency key and content made this job
};

// Why a job is where it is.
struct Explained {
    Job job;
    std::optional<scheduler::Explanation> waiting;  // while it waits for a worker
    std::optional<JobId> waits_for{};               // while it waits for the outputs of this one
    bool is_classified = false;  // its priority was weighed; the grounds are in `waiting`
};

struct QueueCounts {
    std::size_t queued = 0;
    std::size_t running = 0;
    std::size_t retry_waiting = 0;
    std::size_t event_streams = 0;
    std::uint64_t retries_held = 0;  // by the fleet's budget of repetitions, since the start
    std::array<std::size_t, scheduler::kWaitClasses> queued_by_class{};
};

// What a domain is led with. All of it outlives the lead.
struct LedWith {
    Ledger& ledger;  // refuses what is written when the lead is lost already
    Fleet& fleet;
    SharedLedger* shared = nullptr;  // with other nodes; nullptr: with none
};

class Service {
public:
    // `elsewhere`: for domains that other nodes lead; nullptr: there are none.
    Service(
        Executor core,
        Clock& clock,
        Ledger& ledger,
        events::Hub& hub,
        ServiceOptions options,
        Elsewhere* elsewhere = nullptr
    );
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    // Brings every unfinished job of the domain back: queued ones into the queue, running ones
    // re-attached to their worker. On a failure nothing is led. On the core executor, like those
    // below.
    Task<Result<>> lead(std::string domain, LedWith with);
    // Stops placing jobs; running attempts are left on their workers (or finish within `grace`).
    Task<> step_down(std::string domain, Millis grace);
    // The same for all, and nothing is told any more.
    Task<> stop(Millis grace);

    // Of a domain that this node leads, 0 of others. Other nodes may have left something in the
    // ledger for it.
    std::uint64_t queued_in(const std::string& domain) const;
    void look_for_newcomers(const std::string& domain);
    // What they left there longer ago than this is found.
    Millis lag_of(const std::string& domain) const;
    // For what other nodes ask of the domains that this one leads.
    Leader& here();

    // Same tenant and key, same request_hash: the same job again with replayed = true. Other
    // request_hash: Code::idempotency_key_reuse. Also queue_full, storage_*, shutting_down, and
    // what the permit says.
    Task<Result<Submitted>> submit(Spec spec);
    // What submit() would answer to a request with this key, for those who spare themselves the
    // work that comes before it; nullopt: the key is free.
    Task<Result<std::optional<Submitted>>> find_submitted(
        std::string tenant, std::string key, std::string request_hash
    );
    Task<Result<View>> get(std::string tenant, JobId id);
    // Whether what was answered about an ended job still holds; nullopt: it must be read.
    Task<Result<std::optional<Stamp>>> stamp(JobId id);
    Task<Result<Spec>> spec(std::string tenant, JobId id);
    // What was tried so far, the oldest first; nothing is read where there was no more than one
    // attempt that did not fail.
    Task<Result<std::vector<PastAttempt>>> attempts(Job job);
    Task<Result<Explained>> explain(std::string tenant, JobId id);
    Task<Result<Page>> list(ListQuery query);
    // Idempotent: a job that has ended stays as it is.
    Task<Result<View>> cancel(std::string tenant, JobId id);
    // An ended job goes at once with all that is stored of it, unless it is needed still
    // (Ledger::purge()); one that has not ended is cancelled. The job as it was.
    Task<Result<View>> remove(std::string tenant, JobId id);
    // Takes a job out of the queue; one that runs or has ended stays as it is: Code::conflict.
    Task<Result<>> cancel_waiting(std::string tenant, JobId id);
    // failed, cancelled or expired -> queued again. Code::conflict otherwise.
    Task<Result<View>> retry(std::string tenant, JobId id);
    // Everything after `options.since`, in order, without gap or repetition; the stored past first,
    // then live. The stream of an ended job ends with its last event and then waits: stop reading
    // at a terminal event.
    Task<Result<std::shared_ptr<events::Subscription>>> watch(
        std::string tenant, JobId id, events::WatchOptions options
    );
    // What is told of many jobs from now on, of one tenant or of all, to a listener on `executor`.
    // Whoever subscribes before lead() hears of every job that it brings back. Any thread.
    std::shared_ptr<events::Feed> subscribe(Executor executor, events::FeedOptions options);
    // How many of the tenant's jobs have not ended. Counts what was answered before.
    Task<std::size_t> unfinished(std::string tenant);
    // A file that a running job has told of, from the worker that runs it. Code::not_found;
    // Code::conflict: the job does not run (any more), what it has made is with its outputs.
    Task<Result<std::string>> read_output(
        std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
    );
    // Asks every worker that runs nothing to give memory back.
    Task<> free_idle_workers(bool models, bool results);
    Task<Result<WebhookStatus>> webhook_status(JobId id);
    Task<Result<StateCounts>> counts(std::optional<std::string> tenant);
    Task<Result<Stats>> stats(StatsQuery query);
    Task<QueueCounts> queue_counts();
    Task<std::vector<WorkerInfo>> workers();
    // Of the domain that the pool is in. Code::lead_lost.
    Task<Result<Load>> load(std::string pool);
    // Of a domain that this node leads; nullopt of others. Core executor only.
    std::optional<Load> load_here(const std::string& domain) const;

    // What holds for tenants from now on: of those that are led and of those that will be. Core
    // executor only.
    void set_tenants(std::map<std::string, TenantOptions> tenants);
    // Likewise, for models that idle workers load ahead of jobs.
    void set_prewarming(PrewarmOptions options);
    // Of jobs before this process; of a domain that is led here, nothing happens for others. Core
    // executor only.
    void remember_kinds(const std::string& domain, PastKinds kinds);
    // Called on the core executor whenever a worker is done with such a load.
    void on_prewarmed(Warming::OnEnded callback);
    // What was learned of run times, for whoever keeps it over a restart. Core executor only.
    scheduler::Predictor& predictor();
    // Called after a change was committed, on whichever executor did so.
    void on_change(std::function<void(const Job&, const Event&)> callback);
    // Called on the core executor for progress that the job's own webhook wants to hear of, or
    // somebody else: `is_wanted` is asked when an attempt begins. `webhook` is nullptr where that
    // does not.
    void on_progress(
        std::function<void(const Job&, const Webhook* webhook, const Event&)> callback,
        std::function<bool(const Job&)> is_wanted
    );
    // Called on the core executor for every ended job, for metrics.
    void on_finished(std::function<void(const Job&)> callback);
    // Likewise for every attempt that failed, with its cause.
    void on_attempt_failed(std::function<void(const Job&, Cause)> callback);
    // Likewise for every attempt that was measured.
    void on_used(std::function<void(const Job&, const Usage&)> callback);

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::jobs
