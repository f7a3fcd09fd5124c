#include "fleet/providers/docker_place.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace comfyd::fleet {
namespace {

std::vector<std::string> split(std::string_view text, char mark) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(mark), text.size());
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

int to_int(std::string_view text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// A container that is gone for good holds nothing; one that is stopped may be started again.
bool holds_its_place(const ContainerSummary& container) {
    return container.state != "dead" && container.state != "removing";
}

std::map<std::string, int> uses_of_gpus(const std::vector<ContainerSummary>& containers) {
    std::map<std::string, int> uses;
    for (const ContainerSummary& container : containers) {
        if (holds_its_place(container)) {
            for (const std::string& gpu : split(container.label(label::kGpus), ',')) {
                ++uses[gpu];
            }
        }
    }
    return uses;
}

std::size_t count_holding(const std::vector<ContainerSummary>& containers) {
    return static_cast<std::size_t>(std::ranges::count_if(containers, holds_its_place));
}

}  // namespace

int count_free(
    const DockerOptions& options, int gpus_each, const std::vector<ContainerSummary>& others
) {
    int left = -1;
    if (options.machines_max > 0) {
        left = std::max(0, options.machines_max - static_cast<int>(count_holding(others)));
    }
    if (gpus_each > 0 && !options.gpus.empty()) {
        const auto uses = uses_of_gpus(others);
        int free = 0;
        for (const std::string& gpu : options.gpus) {
            const auto used = uses.find(gpu);
            free += std::max(0, options.per_gpu - (used == uses.end() ? 0 : used->second));
        }
        left = left < 0 ? free / gpus_each : std::min(left, free / gpus_each);
    }
    return left;
}

Result<ContainerPlace> choose_place(
    const DockerOptions& options,
    const MachineOrder& order,
    const std::vector<ContainerSummary>& others,
    int port_before
) {
    ContainerPlace place{.port = order.port};
    const int gpus = order.made_from.gpus;
    if (count_free(options, gpus, others) == 0) {
        return fail(Code::out_of_stock, "all places for containers are taken on this computer");
    }
    if (gpus > 0 && !options.gpus.empty()) {
        auto uses = uses_of_gpus(others);
        std::multimap<int, std::string> by_uses;  // in the order of the list among equals
        for (const std::string& gpu : options.gpus) {
            if (uses[gpu] < options.per_gpu) {
                by_uses.emplace(uses[gpu], gpu);
            }
        }
        std::vector<std::string> least_used;
        for (const auto& [count, gpu] : by_uses) {
            least_used.push_back(gpu);
        }
        if (least_used.size() < static_cast<std::size_t>(gpus)) {
            return fail(
                Code::out_of_stock,
                "of the GPUs of this computer " + std::to_string(least_used.size()) +
                    " are free, and a machine wants " + std::to_string(gpus)
            );
        }
        least_used.resize(static_cast<std::size_t>(gpus));
        place.gpus = std::move(least_used);
    }
    if (options.network == "host") {
        std::set<int> taken;
        for (const ContainerSummary& container : others) {
            taken.insert(to_int(container.label(label::kPort)));
        }
        // Not the same again and again: something else may listen there.
        const int count = options.port_last - options.port_first + 1;
        const int from =
            port_before >= options.port_first ? port_before + 1 - options.port_first : 0;
        place.port = 0;
        for (int i = 0; i < count && place.port == 0; ++i) {
            const int port = options.port_first + (from + i) % count;
            place.port = taken.contains(port) ? 0 : port;
        }
        if (place.port == 0) {
            return fail(Code::out_of_stock, "all ports of the range for containers are taken");
        }
    }
    return place;
}

}  // namespace comfyd::fleet
