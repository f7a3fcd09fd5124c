#include "fleet/instances/wants.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/gpu_name.hpp"
#include "base/text.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

std::uint64_t memory_of(const std::string& gpu) {
    const int gigabytes = usual_gpu_memory_gb(gpu);
    return gigabytes == 0 ? kUnknown : least_gpu_memory(gigabytes);
}

// What an offer says of the GPU that is wanted.
enum class Named { exactly, not_at_all, otherwise };

// Smaller is better: the very name, then memory to spare.
using Misfit = std::pair<Named, std::uint64_t>;

Misfit misfit(const std::string& gpu, std::uint64_t memory, const MachineWish& machine) {
    const bool is_exact = machine.gpu.empty() || is_exact_gpu(machine.gpu, gpu);
    return {is_exact ? Named::exactly : Named::otherwise, memory};
}

// Of an offer whose GPUs are the tightest first.
Misfit misfit(const OfferWish& offer, const OfferWish& narrowed, const MachineWish& machine) {
    const std::string gpu = narrowed.gpus.empty() ? std::string() : narrowed.gpus.front();
    Misfit found = misfit(gpu, memory_of(gpu), machine);
    if (offer.gpus.empty() && !machine.gpu.empty()) {
        found.first = Named::not_at_all;
    }
    return found;
}

}  // namespace

std::optional<OfferWish> narrowed(const OfferWish& offer, const MachineWish& machine) {
    OfferWish part = offer;
    if (!machine.region.empty()) {
        if (!offer.region.empty() && lower(offer.region) != lower(machine.region)) {
            return std::nullopt;
        }
        part.region = offer.region.empty() ? machine.region : offer.region;
    }
    if (offer.gpus.empty()) {
        if (!machine.gpu.empty()) {
            part.gpus = {machine.gpu};
        }
        return part;
    }
    std::erase_if(part.gpus, [&machine](const std::string& gpu) {
        return (!machine.gpu.empty() && !is_gpu(machine.gpu, gpu)) ||
               memory_of(gpu) < machine.memory_bytes();
    });
    if (part.gpus.empty()) {
        return std::nullopt;
    }
    if (machine.gpu.empty() && machine.memory_gb == 0) {
        return part;  // in the operator's order
    }
    std::vector<std::pair<Misfit, std::size_t>> order;
    for (const std::string& gpu : part.gpus) {
        order.emplace_back(misfit(gpu, memory_of(gpu), machine), order.size());
    }
    std::ranges::sort(order);
    std::vector<std::string> gpus;
    for (const auto& [misfit, place] : order) {
        gpus.push_back(part.gpus[place]);
    }
    part.gpus = std::move(gpus);
    return part;
}

bool is_wanted(const Offer& offer, const MachineWish& machine) {
    MachineWish anywhere = machine;
    anywhere.pool.clear();
    const std::string& gpu = offer.gpu.empty() ? machine.gpu : offer.gpu;
    const std::string& region = offer.region.empty() ? machine.region : offer.region;
    const std::uint64_t memory =
        offer.gpu_memory_bytes > 0 ? offer.gpu_memory_bytes : memory_of(gpu);
    return Requirement().on(anywhere).allows({{}, gpu, region, memory});
}

std::vector<std::size_t> places_for(
    const std::vector<OfferWish>& offers, const MachineWish& machine
) {
    std::vector<std::pair<Misfit, std::size_t>> found;
    for (std::size_t place = 0; place < offers.size(); ++place) {
        if (const auto part = narrowed(offers[place], machine)) {
            found.emplace_back(misfit(offers[place], *part, machine), place);
        }
    }
    std::ranges::sort(found);
    std::vector<std::size_t> places;
    for (const auto& [misfit, place] : found) {
        places.push_back(place);
    }
    return places;
}

const Offer* tightest(const std::vector<const Offer*>& offers, const MachineWish& machine) {
    const Offer* best = nullptr;
    const auto misfit_of = [&machine](const Offer& offer) {
        const bool is_told = offer.gpu_memory_bytes > 0;
        return misfit(offer.gpu, is_told ? offer.gpu_memory_bytes : memory_of(offer.gpu), machine);
    };
    for (const Offer* offer : offers) {
        const bool is_better = best == nullptr || misfit_of(*offer) < misfit_of(*best);
        best = is_wanted(*offer, machine) && is_better ? offer : best;
    }
    return best;
}

}  // namespace comfyd::fleet
