#include "standalone/backend.hpp"

#include <algorithm>
#include <utility>

#include "comfy/server/machine_memory.hpp"

namespace comfyd::standalone {

namespace server = comfy::server;

server::Limits EngineBackend::limits() const {
    const std::uint64_t bytes_max = core_.options.body_bytes_max;
    return {bytes_max, bytes_max, bytes_max, bytes_max};
}

Task<server::Document> EngineBackend::node_classes() {
    auto text = co_await core_.pool.run([&core = core_] {
        return json::serialize_python(core.engine.object_info());
    });
    co_return server::Document{std::move(text), {}};
}

Task<server::Document> EngineBackend::node_class(std::string name) {
    auto text = co_await core_.pool.run([&core = core_, &name] {
        json::object body;
        if (core.engine.registry().find(name) != nullptr) {
            json::object all = core.engine.object_info();
            if (json::value* found = all.if_contains(name)) {
                body[name] = std::move(*found);
            }
        }
        return json::serialize_python(body);
    });
    co_return server::Document{std::move(text), {}};
}

// No node here needs a model.
json::array EngineBackend::choices(
    std::string_view /*class_type*/, std::string_view /*input*/
) const {
    return {};
}

Task<server::System> EngineBackend::system() {
    const server::MachineMemory memory = server::read_machine_memory();
    server::Device device;
    device.name = "cpu";
    device.type = "cpu";
    device.memory_total = std::min(memory.total, core_.options.memory_bytes_max);
    device.memory_free = std::min(memory.available, core_.options.memory_bytes_max);
    server::System system;
    system.arguments = {"comfyd", "engine"};
    system.devices.push_back(std::move(device));
    co_return system;
}

void EngineBackend::follow_log(const std::string& client_id, bool wanted) {
    core_.logs.subscribe(client_id, wanted);
}

}  // namespace comfyd::standalone
