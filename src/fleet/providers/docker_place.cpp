#include "fleet/providers/docker_place.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "fleet/providers/gpu_shares.hpp"

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

int sharing_of(const DockerOptions& options, int per_gpu) {
    return per_gpu > 0 ? per_gpu : options.per_gpu;
}

std::map<std::string, GpuShares> shares_of_gpus(
    const DockerOptions& options, const std::vector<ContainerSummary>& containers
) {
    std::map<std::string, GpuShares> shares;
    for (const ContainerSummary& container : containers) {
        const int per_gpu = sharing_of(options, to_int(container.label(label::kPerGpu)));
        for (const std::string& gpu : split(container.label(label::kGpus), ',')) {
            if (holds_its_place(container)) {
                shares[gpu].take(per_gpu);
            }
        }
    }
    return shares;
}

std::size_t count_holding(const std::vector<ContainerSummary>& containers) {
    return static_cast<std::size_t>(std::ranges::count_if(containers, holds_its_place));
}

}  // namespace

int count_free(
    const DockerOptions& options,
    int gpus_each,
    int per_gpu,
    const std::vector<ContainerSummary>& others
) {
    int left = -1;
    if (options.machines_max > 0) {
        left = std::max(0, options.machines_max - static_cast<int>(count_holding(others)));
    }
    if (gpus_each > 0 && !options.gpus.empty()) {
        auto shares = shares_of_gpus(options, others);
        int free = 0;
        for (const std::string& gpu : options.gpus) {
            free += shares[gpu].left_for(sharing_of(options, per_gpu));
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
    const int per_gpu = order.made_from.per_gpu;
    if (count_free(options, gpus, per_gpu, others) == 0) {
        return fail(Code::out_of_stock, "all places for containers are taken on this computer");
    }
    if (gpus > 0 && !options.gpus.empty()) {
        auto shares = shares_of_gpus(options, others);
        std::multimap<double, std::string> by_use;  // in the order of the list among equals
        for (const std::string& gpu : options.gpus) {
            if (shares[gpu].left_for(sharing_of(options, per_gpu)) > 0) {
                by_use.emplace(shares[gpu].taken(), gpu);
            }
        }
        std::vector<std::string> least_used;
        for (const auto& [taken, gpu] : by_use) {
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
