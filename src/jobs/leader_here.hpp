// The leader of the domains that this node leads itself, over their dispatchers. For others it
// answers that it does not lead them.
#pragma once

#include "jobs/arrivals.hpp"
#include "jobs/leader.hpp"
#include "jobs/leads.hpp"

namespace comfyd::jobs {

class LeaderHere final : public Leader {
public:
    // Both outlive it.
    LeaderHere(Executor core, Leads& leads, Arrivals& arrivals)
        : core_(core), leads_(leads), arrivals_(arrivals) {}

    Task<Result<>> cancel(LedJob job, Cancel how) override;
    Task<std::optional<Forecast::Live>> live(LedJob job) override;
    Task<std::optional<Waiting>> explain(LedJob job) override;
    Task<Result<std::string>> read_output(LedJob job, WorkerFile file, std::uint64_t bytes_max)
        override;
    Task<std::optional<Load>> load(std::string domain) override;
    Task<std::vector<WorkerInfo>> workers() override;
    Task<> free_idle_workers(bool models, bool results) override;

private:
    // On the core.
    Task<Result<>> cancel_on_core(LedJob job, Cancel how);
    Task<Result<std::string>> read_on_core(LedJob job, WorkerFile file, std::uint64_t bytes_max);
    Task<> free_on_core(bool models, bool results);
    // What `ask` says of the job's dispatcher.
    template <class Ask>
    auto ask(std::string domain, Ask ask);

    Executor core_;
    Leads& leads_;
    // Those who ask after a job may have been told of it while it was still on its way.
    Arrivals& arrivals_;
};

}  // namespace comfyd::jobs
