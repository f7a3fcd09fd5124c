#include "engine/engine.hpp"

#include <utility>

#include "engine/nodes/all.hpp"
#include "engine/run/core.hpp"

namespace comfyd::engine {

class Engine::Impl : public Core {
public:
    using Core::Core;
};

namespace {

Registry all_classes(const EngineOptions& options) {
    Registry registry = make_registry();
    if (options.add_classes) {
        options.add_classes(registry);
    }
    return registry;
}

}  // namespace

Engine::Engine(EngineOptions options) {
    Registry registry = all_classes(options);
    impl_ = std::make_unique<Impl>(std::move(registry), std::move(options));
}

Engine::~Engine() = default;

json::object Engine::object_info() const {
    return impl_->object_info();
}

bool Engine::has_class(std::string_view class_type) const {
    return impl_->registry().find(class_type) != nullptr;
}

Validation Engine::validate(json::object& prompt, const std::vector<std::string>* targets) const {
    return impl_->validate(prompt, targets);
}

Result<RunResult> Engine::run(
    json::object prompt,
    json::object extra_data,
    Listener& listener,
    std::stop_token stop,
    std::vector<std::string> outputs
) {
    return impl_->run(
        std::move(prompt), std::move(extra_data), listener, std::move(stop), std::move(outputs)
    );
}

void Engine::free_memory() {
    impl_->free_memory();
}

}  // namespace comfyd::engine
