#include "standalone/core.hpp"

#include <utility>

#include "engine/nodes/all.hpp"

namespace comfyd::standalone {
namespace {

engine::Registry all_classes(const engine::EngineOptions& options) {
    engine::Registry registry = engine::make_registry();
    if (options.add_classes) {
        options.add_classes(registry);
    }
    return registry;
}

}  // namespace

Core::Core(Executor on, Options with, engine::EngineOptions engine_options)
    : executor(on),
      options(std::move(with)),
      folders(engine_options.folders),
      engine(all_classes(engine_options), engine_options),
      users(options.data / "user" / "default"),
      hub(options.sockets_max),
      logs(hub, clock),
      queue(options.pending_max, options.pending_bytes_max),
      history(options.history_max, options.history_bytes_max),
      wake(on) {}

void Core::tell_status() {
    hub.broadcast(comfy::server::make_status(remaining(), false));
}

engine::Owner Core::owner_named(const std::string& name) const {
    if (name.empty()) {
        return {{}, folders};
    }
    return {name, {folders.input, folders.output / name, folders.temp / name}};
}

bool Core::interrupt(std::string_view id) {
    if (!running || (!id.empty() && running->prompt->id != id)) {
        return false;
    }
    running->stop.request_stop();
    return true;
}

bool Core::cancel(std::string_view id) {
    if (id.empty()) {
        return false;
    }
    if (interrupt(id)) {
        return true;
    }
    if (queue.erase(id) == 0) {
        return false;
    }
    tell_status();
    return true;
}

}  // namespace comfyd::standalone
