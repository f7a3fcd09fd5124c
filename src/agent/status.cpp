#include "agent/status.hpp"

#include <cstdlib>
#include <system_error>
#include <utility>

#include "agent/machine_memory.hpp"
#include "comfy/client.hpp"
#include "comfy/members.hpp"

namespace comfyd::agent {
namespace {

std::string visible_devices() {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible == nullptr ? "" : visible;
}

struct Readings {
    std::uint64_t ram = 0;
    std::uint64_t ram_total = 0;
    std::uint64_t disk_free = 0;
    std::vector<Gpu> gpus;
};

}  // namespace

Status::Status(Parts parts, std::string instance, std::filesystem::path folder)
    : p_(parts),
      instance_(std::move(instance)),
      folder_(std::move(folder)),
      visible_(visible_devices()) {}

std::string_view Status::state() const {
    const bool is_failed =
        is_fetching() ? p_.models->is_failed() : p_.comfyui.state() == ComfyUi::State::failed;
    if (is_failed) {
        return "failed";
    }
    return is_draining_ ? "draining" : is_fetching() ? "fetching" : to_string(p_.comfyui.state());
}

std::string Status::reason() const {
    return is_fetching() ? p_.models->reason() : p_.comfyui.reason();
}

Task<json::object> Status::read() {
    const pid_t pid = p_.comfyui.pid();
    const bool reads_gpus = !std::exchange(is_reading_, true);
    auto readings = co_await p_.pool.run([this, pid, reads_gpus] {
        Readings made;
        std::error_code error;
        const auto space = std::filesystem::space(folder_, error);
        made.disk_free = error ? 0 : space.available;
        made.ram = memory_of(pid);
        made.ram_total = memory_total();
        if (reads_gpus) {
            made.gpus = only_visible(gpus_.look().gpus, visible_);
        }
        return made;
    });
    if (reads_gpus) {
        json::array gpus;
        for (const Gpu& gpu : readings.gpus) {
            gpus.push_back(to_json(gpu));
        }
        if (gpus.empty() && p_.comfyui.state() == ComfyUi::State::ready) {
            gpus = co_await devices_of_comfyui();
        }
        known_gpus_ = std::move(gpus);
        is_reading_ = false;
    }
    json::object shown;
    shown["instance"] = instance_;
    shown["state"] = state();
    shown["reason"] = reason();
    shown["comfyui"] = {
        {"pid", pid},
        {"restarts", p_.comfyui.restarts()},
        {"version", p_.comfyui.version()},
        {"jobs", p_.comfyui.jobs()}
    };
    shown["jobs"] = p_.comfyui.queued();
    shown["wants_rest"] = p_.comfyui.wants_rest();
    shown["ram_bytes"] = readings.ram;
    shown["ram_total_bytes"] = readings.ram_total;
    shown["disk_free_bytes"] = readings.disk_free;
    const auto uptime = std::chrono::steady_clock::now() - started_;
    shown["uptime_s"] = std::chrono::duration_cast<std::chrono::seconds>(uptime).count();
    shown["gpus"] = known_gpus_;
    if (p_.files != nullptr) {
        shown["files_revision"] = p_.files->revision();
    }
    if (p_.models != nullptr) {
        shown["models"] = p_.models->summary();
    }
    co_return shown;
}

Task<json::array> Status::devices_of_comfyui() {
    comfy::Client client(p_.http, p_.pool, p_.comfyui.url(), {});
    const auto stats = co_await client.system_stats();
    json::array devices;
    if (stats && !stats->device.empty() && stats->device != "cpu") {
        Gpu gpu;
        gpu.name = stats->device;
        gpu.memory_total_bytes = stats->vram_total;
        gpu.memory_free_bytes = stats->vram_free;
        devices.push_back(to_json(gpu));
    }
    co_return devices;
}

}  // namespace comfyd::agent
