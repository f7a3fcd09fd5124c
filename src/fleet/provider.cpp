#include "fleet/provider.hpp"

#include <utility>

#include "fleet/fleet.hpp"
#include "net/lines.hpp"

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

Task<> ConfiguredWorkers::recall() {
    for (const WorkerConfig& worker : workers_) {
        const auto name = net::line_name(worker.url);
        if (name && callers_ != nullptr) {
            callers_->admit(*name, worker.id, worker.token);
            let_in_.push_back(*name);
        }
    }
    co_return;
}

Task<> ConfiguredWorkers::end() {
    for (const std::string& name : std::exchange(let_in_, {})) {
        callers_->dismiss(name);
    }
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
