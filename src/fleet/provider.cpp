#include "fleet/provider.hpp"

#include "fleet/fleet.hpp"

namespace comfyd::fleet {

Task<> WorkerProvider::recall() {
    co_return;
}

Result<> ConfiguredWorkers::begin(Fleet& fleet) {
    for (const WorkerConfig& worker : workers_) {
        if (auto added = fleet.add_comfyui(worker); !added) {
            return added;
        }
    }
    return {};
}

Task<> ConfiguredWorkers::end() {
    co_return;
}

Result<> EngineChildren::begin(Fleet& fleet) {
    for (const EngineConfig& engine : engines_) {
        if (auto added = fleet.add_engine(engine); !added) {
            return added;
        }
    }
    return {};
}

Task<> EngineChildren::end() {
    co_return;
}

}  // namespace comfyd::fleet
