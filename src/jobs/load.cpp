// A domain's load, as its dispatcher sees it and as it is asked for from anywhere.
#include "jobs/load.hpp"

#include "jobs/service_impl.hpp"

namespace comfyd::jobs {

std::string Service::Impl::domain_of(std::string_view pool) const {
    const auto domain = options_.domains.find(pool);
    return domain == options_.domains.end() ? Spec().domain : domain->second;
}

Task<Result<Load>> Service::Impl::load(std::string pool) {
    const std::string domain = domain_of(pool);
    auto load = co_await here_.load(domain);
    if (!load && elsewhere_ != nullptr) {
        load = co_await elsewhere_->load(domain);
    }
    if (!load) {
        co_return fail(Code::lead_lost, "no node leads the domain '" + domain + "' now");
    }
    co_return std::move(*load);
}

Task<Result<Load>> Service::load(std::string pool) {
    return impl_->load(std::move(pool));
}
std::optional<Load> Service::load_here(const std::string& domain) const {
    const Dispatcher* dispatcher = impl_->leads_.find(domain);
    return dispatcher == nullptr ? std::nullopt : std::optional(dispatcher->load());
}

Load Dispatcher::load() const {
    Load load;
    for (scheduler::Demand& demand : scheduler_.demands()) {
        load.waiting.push_back(
            {std::move(demand.machine),
             demand.waiting.jobs,
             demand.waiting.seconds,
             demand.is_served}
        );
    }
    load.backlog = scheduler_.backlog();
    load.arrived_s = scheduler_.arrived_s();
    load.gpu_speeds = scheduler_.gpu_speeds();
    for (const auto& worker : fleet_.workers()) {
        const WorkerInfo info = worker->info();
        if (info.url == "engine:") {
            continue;  // no machine
        }
        const scheduler::WorkerUse use = scheduler_.use_of(info.id, clock_.now());
        load.workers.push_back(
            {info.id,
             info.pool,
             info.status,
             info.slots,
             use.jobs + preparing_.fetches_of(info.id),
             use.seconds,
             use.wanted,
             use.best_effort}
        );
    }
    return load;
}

}  // namespace comfyd::jobs
