#include "app/local_comfyui.hpp"

#include <algorithm>
#include <utility>

#include "app/config/settings.hpp"

namespace comfyd::app {
namespace {

constexpr const char* kPool = "default";

}  // namespace

Result<fleet::LocalPool> local_pool_of(
    const std::map<std::string, std::string>& options,
    const std::filesystem::path& data,
    const GpuSources& gpus
) {
    const auto settings = fleet::read_local_settings(options);
    if (!settings) {
        return fail(settings.error());
    }
    return fleet::local_pool(*settings, data / "machines", gpus);
}

Result<> add_local_comfyui(Config& config, const GpuSources& gpus) {
    if (!config.comfyui.contains("dir")) {
        return {};
    }
    if (is_clustered(config)) {
        return invalid(
            "'comfyui.dir' is for one comfyd by itself: among several nodes the one that leads may "
            "change, and with it the computer. Start a ComfyUI on each and name them in 'workers'"
        );
    }
    const auto has_name = [](const char* name) {
        return [name](const auto& other) { return other.name == name; };
    };
    if (std::ranges::any_of(config.fleet.providers, has_name(kLocalProvider)) ||
        std::ranges::any_of(config.fleet.pools, has_name(kPool))) {
        return invalid(
            "'comfyui.dir' makes the provider 'local' and the pool 'default', of which one is "
            "configured already: name a provider of the kind 'process' in your pools instead"
        );
    }
    auto local = local_pool_of(config.comfyui, config.data, gpus);
    if (!local) {
        return fail(std::move(local.error()));
    }
    config.fleet.providers.push_back({kLocalProvider, "process", config.comfyui});
    fleet::PoolSettings pool;
    pool.name = kPool;
    pool.size = local->size;
    pool.offers.push_back({kLocalProvider, {}});
    config.fleet.pools.push_back(std::move(pool));
    return {};
}

}  // namespace comfyd::app
