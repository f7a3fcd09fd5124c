// What the fleet has: node classes, models, devices.
#include <utility>

#include "api/dialects/native/gateway.hpp"
#include "api/dialects/native/request.hpp"
#include "api/dialects/native/uploads.hpp"
#include "comfy/server/machine_memory.hpp"

namespace comfyd::api::native {
namespace {

namespace server = comfy::server;

constexpr std::uint64_t kDocumentBytesMax = 64ULL * 1024 * 1024;

server::Device device_of(
    const jobs::WorkerInfo& worker, std::size_t index, const server::MachineMemory& memory
) {
    const bool is_cpu = worker.gpu.empty() || worker.gpu.starts_with("cpu");
    const bool has_own = !is_cpu || worker.vram_total > 0;
    server::Device device;
    device.name = is_cpu ? "cpu" : worker.gpu;
    device.type = is_cpu ? "cpu" : "cuda";
    device.index = is_cpu ? std::nullopt : std::optional(index);
    device.memory_total = has_own ? worker.vram_total : memory.total;
    device.memory_free = has_own ? worker.vram_free : memory.available;
    device.torch_memory_total = device.memory_total;
    device.torch_memory_free = device.memory_free;
    return device;
}

}  // namespace

server::Limits Gateway::limits() const {
    const ApiOptions& options = context_.services.options;
    return {
        prompt_bytes_max(call_, context_.services),
        options.json_body_bytes_max,
        options.upload_bytes_max,
        kDocumentBytesMax,
    };
}

Task<server::Document> Gateway::node_classes() {
    const auto catalogue = context_.services.catalogue();
    auto uploads = co_await context_.services.files->list(tenant(), "input");
    auto info = co_await disk().run([catalogue] { return catalogue->object_info(); });
    if (uploads.empty()) {
        co_return server::Document{info->text, info->etag};
    }
    auto text = co_await disk().run([info, uploads = std::move(uploads)] {
        return with_uploads(info->text, uploads);
    });
    co_return server::Document{std::move(text), {}};
}

Task<server::Document> Gateway::node_class(std::string name) {
    const auto catalogue = context_.services.catalogue();
    auto text = catalogue->object_info(name);
    const auto uploads = co_await context_.services.files->list(tenant(), "input");
    co_return server::Document{uploads.empty() ? std::move(text) : with_uploads(text, uploads), {}};
}

json::array Gateway::choices(std::string_view class_type, std::string_view input) const {
    json::array names;
    const auto catalogue = context_.services.catalogue();
    const auto* definition = catalogue->find(class_type);
    const auto* found = definition == nullptr ? nullptr : definition->find_input(input, {});
    if (found != nullptr && found->choices != nullptr) {
        for (const json::value& choice : *found->choices) {
            if (choice.is_string()) {
                names.push_back(choice);
            }
        }
    }
    return names;
}

json::object Gateway::node_replacements() const {
    return context_.services.catalogue()->replacements();
}

Task<server::System> Gateway::system() {
    auto workers = co_await context_.services.jobs.workers();
    const server::MachineMemory memory = server::read_machine_memory();
    server::System system;
    system.arguments = {"comfyd"};
    bool knows_version = false;
    for (const jobs::WorkerInfo& worker : workers) {
        system.devices.push_back(device_of(worker, system.devices.size(), memory));
        if (!knows_version && worker.url != "engine:" && !worker.version.empty()) {
            system.version = worker.version;
            knows_version = true;
        }
    }
    co_return system;
}

}  // namespace comfyd::api::native
