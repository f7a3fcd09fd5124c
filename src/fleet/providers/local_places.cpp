#include "fleet/providers/local_places.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "fleet/providers/agent_command.hpp"
#include "fleet/providers/gpu_shares.hpp"

namespace comfyd::fleet {
namespace {

// An offer of computers whose GPUs are not ours to give.
constexpr const char* kWhateverThereIs = "any";

bool is_free(int port) {
    const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Listening, too: another may be bound there and not listen yet.
    const bool is_ours =
        probe >= 0 &&
        ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(probe, 1) == 0;
    if (probe >= 0) {
        ::close(probe);
    }
    return is_ours;
}

bool is_wanted(const OfferWish& wish, const Gpu& gpu) {
    return wish.gpus.empty() || std::ranges::any_of(wish.gpus, [&gpu](const std::string& kind) {
               return kind == gpu.uuid || lower(gpu.name).find(lower(kind)) != std::string::npos;
           });
}

}  // namespace

GpuSharing LocalPlaces::sharing_of(int per_gpu) const {
    GpuSharing sharing = options_.sharing;
    sharing.per_gpu = per_gpu == 0 ? sharing.per_gpu : per_gpu;
    return sharing;
}

int LocalPlaces::places_anywhere(int per_gpu, const std::vector<ProcessRecord>& all) const {
    GpuShares shares;
    for (const ProcessRecord& record : all) {
        shares.take(sharing_of(record.per_gpu).per_gpu);
    }
    return shares.left_for(sharing_of(per_gpu).per_gpu);
}

GpuUse LocalPlaces::use_of(const Gpu& gpu, const std::vector<ProcessRecord>& all) const {
    GpuUse use{gpu, {}, 0};
    std::set<pid_t> ours;
    for (const ProcessRecord& record : all) {
        if (record.gpu != gpu.uuid) {
            continue;
        }
        GpuTenant tenant{record.memory_bytes, std::nullopt, sharing_of(record.per_gpu).per_gpu};
        const std::string variable =
            std::string(kMachineVariable) + "=" + (options_.folder / record.name).string();
        for (const GpuProcess& process : gpu.processes) {
            if (process.memory_bytes && was_given(process.pid, variable)) {
                tenant.used_bytes = tenant.used_bytes.value_or(0) + *process.memory_bytes;
                ours.insert(process.pid);
            }
        }
        use.tenants.push_back(tenant);
    }
    for (const GpuProcess& process : gpu.processes) {
        if (!ours.contains(process.pid) && !find_process(process.pid)) {
            use.hidden_bytes += process.memory_bytes.value_or(0);
        }
    }
    return use;
}

Result<std::vector<GpuUse>> LocalPlaces::gpu_uses(const std::vector<ProcessRecord>& all) const {
    const GpuReading reading = gpus_.look();
    if (reading.source.empty()) {
        return fail(
            Code::not_found,
            "no NVIDIA GPU is to be found on this computer: " + reading.problem +
                ". Install NVIDIA's driver, or for other GPUs let ComfyUI find them by itself "
                "(comfyui.gpus: any)"
        );
    }
    std::vector<GpuUse> uses;
    for (const Gpu& gpu : reading.gpus) {
        if (options_.gpus_used.empty() ||
            std::ranges::find(options_.gpus_used, gpu.uuid) != options_.gpus_used.end()) {
            uses.push_back(use_of(gpu, all));
        }
    }
    return uses;
}

Result<std::vector<Offer>> LocalPlaces::offers(
    const OfferWish& wish, const std::vector<ProcessRecord>& all
) const {
    std::vector<Offer> offers;
    if (wish.market == Market::spot) {
        return offers;
    }
    if (options_.finds_gpu_itself) {
        Offer offer;
        offer.id = kWhateverThereIs;
        offer.available = places_anywhere(wish.per_gpu, all);
        offers.push_back(std::move(offer));
        return offers;
    }
    const auto uses = gpu_uses(all);
    if (!uses) {
        return fail(uses.error());
    }
    for (const GpuUse& use : *uses) {
        if (is_wanted(wish, use.gpu)) {
            const GpuPlace place = place_on(use, sharing_of(wish.per_gpu));
            Offer offer;
            offer.id = use.gpu.uuid;
            offer.gpu = use.gpu.name;
            offer.gpu_memory_bytes = place.memory_bytes;
            offer.available = place.free_places;
            offers.push_back(std::move(offer));
        }
    }
    std::ranges::sort(offers, std::greater<>(), &Offer::available);
    return offers;
}

Result<> LocalPlaces::reserve_gpu(
    ProcessRecord& record, const std::string& offer, const std::vector<ProcessRecord>& all
) const {
    if (record.hides_gpus) {
        return {};
    }
    if (options_.finds_gpu_itself) {
        if (places_anywhere(record.per_gpu, all) == 0) {
            return fail(
                Code::out_of_stock,
                "this computer has its " + std::to_string(all.size()) + " processes"
            );
        }
        return {};
    }
    const auto uses = gpu_uses(all);
    if (!uses) {
        return fail(uses.error());
    }
    auto gpu = choose_gpu(*uses, sharing_of(record.per_gpu), offer);
    if (!gpu) {
        return fail(std::move(gpu.error()));
    }
    record.gpu = std::move(*gpu);
    record.memory_bytes = options_.sharing.memory_bytes_each;
    return {};
}

Result<int> LocalPlaces::free_port(const std::set<int>& taken) const {
    for (int port = options_.port_first; port <= options_.port_last; ++port) {
        if (!taken.contains(port) && is_free(port)) {
            return port;
        }
    }
    return fail(
        Code::out_of_stock,
        "no port from " + std::to_string(options_.port_first) + " to " +
            std::to_string(options_.port_last) + " is free: others listen on all of them"
    );
}

Result<> LocalPlaces::reserve(
    ProcessRecord& record, const std::string& offer, const std::vector<ProcessRecord>& all
) const {
    if (auto found = reserve_gpu(record, offer, all); !found) {
        return found;
    }
    std::set<int> taken;
    for (const ProcessRecord& other : all) {
        taken.insert({other.port, other.comfyui_port});
    }
    auto port = free_port(taken);
    if (!port) {
        return fail(std::move(port.error()));
    }
    record.comfyui_port = *port;
    if (options_.listens_on_sockets && has_room_for_socket(options_.folder / record.name)) {
        return {};
    }
    taken.insert(*port);
    port = free_port(taken);
    if (!port) {
        return fail(std::move(port.error()));
    }
    record.port = *port;
    return {};
}

}  // namespace comfyd::fleet
