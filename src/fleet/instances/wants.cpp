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

// Smaller is better: another name than the one that was wanted, then memory to spare.
using Misfit = std::pair<bool, std::uint64_t>;

Misfit misfit(const std::string& gpu, std::uint64_t memory, const MachineWish& machine) {
    return {!machine.gpu.empty() && !is_exact_gpu(machine.gpu, gpu), memory};
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
    return part.gpus.empty() ? std::nullopt : std::optional(std::move(part));
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
            const std::string gpu = part->gpus.empty() ? std::string() : part->gpus.front();
            found.emplace_back(misfit(gpu, memory_of(gpu), machine), place);
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
