#include "app/workers.hpp"

#include <utility>

#include "app/config/part_options.hpp"
#include "app/engine_process.hpp"

namespace comfyd::app {

Result<WorkerProviders> make_worker_providers(
    const Config& config, const std::filesystem::path& data, const std::string& domain
) {
    WorkerProviders providers;
    std::vector<fleet::WorkerConfig> named;
    for (const WorkerSetting& worker : config.workers) {
        if (domain_of(config, worker.pool) == domain) {
            named.push_back(worker_config(config, worker));
        }
    }
    providers.push_back(std::make_unique<fleet::ConfiguredWorkers>(std::move(named)));
    if (is_clustered(config)) {
        return providers;
    }
    auto engines = engine_processes(config, data);
    if (!engines) {
        return fail(std::move(engines.error()));
    }
    providers.push_back(std::make_unique<fleet::EngineChildren>(std::move(*engines)));
    return providers;
}

}  // namespace comfyd::app
