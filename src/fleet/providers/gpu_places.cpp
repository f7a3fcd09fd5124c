#include "fleet/providers/gpu_places.hpp"

#include <algorithm>
#include <tuple>

#include "fleet/providers/gpu_shares.hpp"

namespace comfyd::fleet {
namespace {

std::string in_gb(std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes + 50'000'000) / 100'000'000;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

// What others than us have of it, and the driver.
std::uint64_t of_others(const GpuUse& use) {
    const std::uint64_t used = use.gpu.memory_total_bytes - use.gpu.memory_free_bytes;
    std::uint64_t ours = 0;
    std::uint64_t unseen = 0;
    for (const GpuTenant& tenant : use.tenants) {
        if (tenant.used_bytes) {
            ours += *tenant.used_bytes;
        } else {
            unseen += tenant.promised_bytes == 0 ? use.hidden_bytes
                                                 : tenant.promised_bytes + kGpuOverheadBytes;
        }
    }
    ours += std::min(unseen, use.hidden_bytes);
    return used > ours ? used - ours : 0;
}

std::string whose(const GpuUse& use) {
    return use.gpu.name + " (" + use.gpu.uuid + ")";
}

// Each has what it may need.
GpuPlace by_need(const GpuUse& use, const GpuSharing& sharing, int places) {
    const std::uint64_t need = sharing.memory_bytes_each + kGpuOverheadBytes;
    std::uint64_t taken = of_others(use);
    const std::uint64_t foreign = taken;
    for (const GpuTenant& tenant : use.tenants) {
        taken += std::max(tenant.promised_bytes + kGpuOverheadBytes, tenant.used_bytes.value_or(0));
    }
    const std::uint64_t total = use.gpu.memory_total_bytes;
    const std::uint64_t left = total > taken ? total - taken : 0;
    const auto fitting = static_cast<int>(std::min<std::uint64_t>(left / need, 1'000));
    if (fitting == 0) {
        return {
            0,
            0,
            whose(use) + " has " + in_gb(left) + " left for a process that needs " + in_gb(need) +
                " (with " + in_gb(kGpuOverheadBytes) + " of its own): of " + in_gb(total) +
                " others use " + in_gb(foreign) + " and " + std::to_string(use.tenants.size()) +
                " of ours are promised the rest"
        };
    }
    return {std::min(fitting, places), sharing.memory_bytes_each, ""};
}

// Each has an equal part of what others leave.
GpuPlace by_share(const GpuUse& use, const GpuSharing& sharing, int places) {
    const std::uint64_t total = use.gpu.memory_total_bytes;
    const std::uint64_t foreign = std::min(of_others(use), total);
    const std::uint64_t share = (total - foreign) / static_cast<std::uint64_t>(sharing.per_gpu);
    if (share < kGpuOverheadBytes + kGpuShareBytesMin) {
        return {
            0,
            0,
            whose(use) + " has too little memory for " + std::to_string(sharing.per_gpu) +
                " processes: others use " + in_gb(foreign) + " of " + in_gb(total) +
                ", and a share of " + in_gb(share) + " is less than the least, " +
                in_gb(kGpuOverheadBytes + kGpuShareBytesMin)
        };
    }
    return {places, share - kGpuOverheadBytes, ""};
}

}  // namespace

GpuPlace place_on(const GpuUse& use, const GpuSharing& sharing) {
    GpuShares shares;
    for (const GpuTenant& tenant : use.tenants) {
        shares.take(tenant.per_gpu == 0 ? sharing.per_gpu : tenant.per_gpu);
    }
    const int places = shares.left_for(sharing.per_gpu);
    if (places == 0) {
        return {
            0,
            0,
            whose(use) + " has its " + std::to_string(use.tenants.size()) +
                (use.tenants.size() == 1 ? " process" : " processes")
        };
    }
    if (use.gpu.memory_total_bytes == 0) {
        return {places, 0, ""};
    }
    return sharing.memory_bytes_each == 0 ? by_share(use, sharing, places)
                                          : by_need(use, sharing, places);
}

Result<std::string> choose_gpu(
    const std::vector<GpuUse>& uses, const GpuSharing& sharing, const std::string& wanted
) {
    const GpuUse* best = nullptr;
    const auto rank = [](const GpuUse& use) {
        return std::tuple(use.tenants.size(), ~use.gpu.memory_free_bytes);
    };
    std::string reasons;
    for (const GpuUse& use : uses) {
        if (!wanted.empty() && use.gpu.uuid != wanted) {
            continue;
        }
        const GpuPlace place = place_on(use, sharing);
        if (place.free_places == 0) {
            reasons += (reasons.empty() ? "" : "; ") + place.reason;
        } else if (best == nullptr || rank(use) < rank(*best)) {
            best = &use;
        }
    }
    if (best != nullptr) {
        return best->gpu.uuid;
    }
    if (reasons.empty()) {
        return fail(
            Code::not_found,
            wanted.empty() ? "this computer has no GPU" : "this computer has no GPU " + wanted
        );
    }
    return fail(Code::out_of_stock, "no GPU has a place for another process: " + reasons);
}

}  // namespace comfyd::fleet
