#include "agent/gpus.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace comfyd::agent {
namespace {

bool is_named(const Gpu& gpu, std::size_t number, std::string_view visible) {
    while (!visible.empty()) {
        const auto end = std::min(visible.find(','), visible.size());
        const std::string_view name = trim(visible.substr(0, end));
        visible.remove_prefix(std::min(end + 1, visible.size()));
        std::size_t named = 0;
        const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), named);
        const bool is_number = error == std::errc() && rest == name.data() + name.size();
        if (is_number ? named == number : !name.empty() && gpu.uuid.starts_with(name)) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::vector<Gpu> only_visible(std::vector<Gpu> gpus, std::string_view visible) {
    if (trim(visible).empty()) {
        return gpus;
    }
    std::vector<Gpu> seen;
    for (std::size_t number = 0; number < gpus.size(); ++number) {
        if (is_named(gpus[number], number, visible)) {
            seen.push_back(std::move(gpus[number]));
        }
    }
    return seen;
}

json::object to_json(const Gpu& gpu) {
    json::array processes;
    for (const GpuProcess& process : gpu.processes) {
        processes.push_back(
            json::object{{"pid", process.pid}, {"memory_bytes", process.memory_bytes.value_or(0)}}
        );
    }
    json::object shown;
    shown["uuid"] = gpu.uuid;
    shown["name"] = gpu.name;
    shown["memory_total_bytes"] = gpu.memory_total_bytes;
    shown["memory_free_bytes"] = gpu.memory_free_bytes;
    shown["processes"] = std::move(processes);
    return shown;
}

}  // namespace comfyd::agent
