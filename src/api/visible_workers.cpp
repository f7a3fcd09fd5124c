#include "api/visible_workers.hpp"

namespace comfyd::api {

bool is_pool_for(const Call& call, const Services& services, const std::string& pool) {
    const auto own = services.rules.tenants->find(call.caller.tenant);
    const bool is_limited = own && !own->pools.empty() && !call.caller.may(auth::Scope::admin);
    return !is_limited || own->pools.contains(pool);
}

Task<std::vector<jobs::WorkerInfo>> visible_workers(const Call& call, const Services& services) {
    auto workers = co_await services.jobs.workers();
    std::erase_if(workers, [&](const jobs::WorkerInfo& worker) {
        return worker.url != "engine:" && !is_pool_for(call, services, worker.pool);
    });
    co_return workers;
}

}  // namespace comfyd::api
