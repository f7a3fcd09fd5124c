#include "app/workers.hpp"

#include <utility>

#include "app/config/part_options.hpp"
#include "app/engine_process.hpp"
#include "app/machine_providers.hpp"

namespace comfyd::app {
namespace {

Result<std::unique_ptr<fleet::KeptPools>> make_kept_pools(
    const Config& config, const KeptParts& parts, const std::string& domain
) {
    auto providers =
        make_machine_providers({parts.core, parts.clock, parts.pool, config, config.data});
    if (!providers) {
        return fail(std::move(providers.error()));
    }
    fleet::KeptPools::Parts kept{
        .core = parts.core,
        .clock = parts.clock,
        .lane = parts.lane,
        .pool = parts.pool,
        .store = parts.store,
        .providers = std::move(*providers),
        .fleet = config.fleet_name,
        .domain = domain,
        .pools = {},
        .budget = config.fleet.budget,
        .gateway = config.public_url,
        .callers = &parts.callers,
        .load = parts.load,
        .mandate = parts.mandate,
    };
    for (fleet::PoolSettings pool : config.fleet.pools) {
        if (domain_of(config, pool.name) == domain) {
            pool.gpu_second_usd =
                pool.gpu_second_usd > 0 ? pool.gpu_second_usd : config.gpu_second_usd;
            pool.software = software_of(config.fleet, pool);
            kept.pools.push_back(std::move(pool));
        }
    }
    return std::make_unique<fleet::KeptPools>(std::move(kept));
}

}  // namespace

std::map<std::string, std::string> software_of_pools(const Config& config) {
    std::map<std::string, std::string> software;
    for (const fleet::PoolSettings& pool : config.fleet.pools) {
        software[pool.name] = software_of(config.fleet, pool);
    }
    return software;
}

Result<WorkerSources> make_worker_providers(
    const Config& config, const KeptParts& parts, const std::string& domain
) {
    WorkerSources sources;
    std::vector<fleet::WorkerConfig> named;
    for (const WorkerSetting& worker : config.workers) {
        if (domain_of(config, worker.pool) == domain) {
            named.push_back(worker_config(config, worker));
        }
    }
    sources.providers.push_back(
        std::make_unique<fleet::ConfiguredWorkers>(std::move(named), &parts.callers)
    );
    if (!config.fleet.providers.empty()) {
        auto kept = make_kept_pools(config, parts, domain);
        if (!kept) {
            return fail(std::move(kept.error()));
        }
        sources.kept = kept->get();
        sources.providers.push_back(std::move(*kept));
    }
    if (is_clustered(config)) {
        return sources;
    }
    auto engines = engine_processes(config, config.data);
    if (!engines) {
        return fail(std::move(engines.error()));
    }
    sources.providers.push_back(std::make_unique<fleet::EngineChildren>(std::move(*engines)));
    return sources;
}

}  // namespace comfyd::app
