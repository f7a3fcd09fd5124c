// The inside of the service, over the ledger, the dispatchers and the jobs on their way between the
// two: how jobs come in is in service_submit.cpp, how they are listened to in service_listen.cpp,
// what is asked of them otherwise in service.cpp. Thread rules as for the service.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/ferry.hpp"
#include "base/mutex.hpp"
#include "jobs/arrivals.hpp"
#include "jobs/backlog.hpp"
#include "jobs/dispatcher.hpp"
#include "jobs/leader_here.hpp"
#include "jobs/leads.hpp"
#include "jobs/service.hpp"

namespace comfyd::jobs {

class Service::Impl {
public:
    Impl(
        Executor core,
        Clock& clock,
        Ledger& ledger,
        events::Hub& hub,
        ServiceOptions options,
        Elsewhere* elsewhere
    );

    // On the core.
    Task<Result<>> lead(std::string domain, LedWith with);
    Task<> stop(Millis grace);
    using TenantMap = std::map<std::string, TenantOptions>;
    void set_tenants(TenantMap tenants);

    Task<Result<Submitted>> submit(Spec spec);
    Task<Result<std::optional<Submitted>>> find_submitted(
        std::string tenant, std::string key, std::string request_hash
    );

    Task<Result<Job>> find(std::string tenant, JobId id);
    Task<Result<View>> get(std::string tenant, JobId id);
    Task<Result<Explained>> explain(std::string tenant, JobId id);
    Task<Result<View>> cancel(std::string tenant, JobId id);
    Task<Result<View>> remove(std::string tenant, JobId id);
    Task<Result<>> cancel_waiting(std::string tenant, JobId id);
    Task<Result<View>> retry(std::string tenant, JobId id);
    Task<Result<std::shared_ptr<events::Subscription>>> watch(
        std::string tenant, JobId id, events::WatchOptions options
    );
    std::shared_ptr<events::Feed> subscribe(Executor executor, events::FeedOptions options);
    Task<std::size_t> unfinished(std::string tenant);
    Task<Result<std::string>> read_output(
        std::string tenant, JobId id, WorkerFile file, std::uint64_t bytes_max
    );
    Task<> free_idle_workers(bool models, bool results);
    Task<QueueCounts> queue_counts();
    Task<std::vector<WorkerInfo>> workers();
    Task<Result<Load>> load(std::string pool);

    Executor core_;
    Clock& clock_;
    Ledger& ledger_;
    events::Hub& hub_;
    ServiceOptions options_;  // but for its tenants
    Elsewhere* elsewhere_;
    scheduler::Predictor predictor_;
    Backlog backlog_;  // of all that is led here
    Leads leads_;
    Arrivals arrivals_;
    Ferry to_core_;
    LeaderHere here_;
    std::atomic<bool> stopping_{false};
    bool is_over_ = false;  // nothing is told any more; of the core

    // For every dispatcher that comes.
    std::function<void(const Job&, const Event&)> changed_;
    AttemptStart::ProgressTold progress_;
    std::function<bool(const Job&)> is_progress_wanted_;
    std::function<void(const Job&)> finished_;
    std::function<void(const Job&, const Usage&)> used_;
    std::function<void(const Job&, Cause)> attempt_failed_;
    Warming::OnEnded prewarmed_;
    PrewarmOptions prewarming_;

private:
    // These are on the core, and answer nullopt when another node leads the domain.
    // `view`, `queued`: get what is expected of the job, where that is asked for.
    Task<std::optional<Result<Accepted>>> accept_at_once(NewJob& job, View& view, Event& queued);
    Task<std::optional<Result<>>> retry_here(std::string domain, JobId id);

    Task<Result<>> cancel(LedJob job, Cancel how);
    // An ended job is nobody's: any node brings it back, and its leader finds it.
    Task<Result<>> retry_for_leader(Job job);
    std::string domain_of(std::string_view pool) const;
    // On the core: what is expected of the job, into the answer and the event that tells of its
    // acceptance.
    void add_outlook(NewJob& job, View& view);
    // nullopt: there are no outputs for it, `job` is as it was.
    Task<std::optional<Result<Accepted>>> accept_with_outputs(NewJob& job, View& view);
    // On the core: to those who listen.
    void tell_of_answered(const Job& queued, const Change& completed);
    Task<Result<Submitted>> replay(Accepted accepted, std::string request_hash);
    Task<Result<Submitted>> replay_instead(const Spec& spec, Error refusal);
    Task<Result<ServiceOptions::Permit>> ask_permit(std::string tenant, std::string tier);
    std::shared_ptr<const TenantMap> tenants() const;  // any thread
    // By what seldom changes. Any thread.
    int likely_rank(const Job& job) const;
    // Those in the queues and those on their way to them.
    std::size_t jobs_ahead(int rank) const;

    mutable Mutex tenants_mutex_;
    std::shared_ptr<const TenantMap> tenants_ COMFYD_GUARDED_BY(tenants_mutex_);
};

}  // namespace comfyd::jobs
