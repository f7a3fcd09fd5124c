// The engine behind engine.hpp, over any set of node classes and for several owners, of whom none
// learns what the others have or did. Any thread; it outlives every run() on it.
#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "engine/nodes/registry.hpp"
#include "engine/pool.hpp"
#include "engine/run/cache.hpp"
#include "engine/values/memory.hpp"
#include "engine/values/owner.hpp"

namespace comfyd::engine {

class Core {
public:
    Core(Registry registry, EngineOptions options);

    json::object object_info() const;
    const Registry& registry() const { return registry_; }
    Validation validate(
        json::object& prompt,
        const std::vector<std::string>* targets = nullptr,
        const Owner* owner = nullptr
    ) const;
    Result<RunResult> run(
        json::object prompt,
        json::object extra_data,
        Listener& listener,
        std::stop_token stop,
        std::vector<std::string> outputs = {},
        const Owner* owner = nullptr
    );
    void free_memory() {
        cache_.clear();
        memory_->drop_spares();
    }
    const Memory& memory() const { return *memory_; }

private:
    Registry registry_;
    EngineOptions options_;
    Owner only_user_;                 // of runs that name no other
    std::shared_ptr<Memory> memory_;  // shared with every buffer
    Cache cache_;
    Pool pool_;
};

}  // namespace comfyd::engine
