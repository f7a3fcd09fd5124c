// Which GPU of this computer the next process of ours gets: several may share one as long as their
// number and what each was promised of its memory allow. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/gpus.hpp"

namespace comfyd::fleet {

// What a process takes of a GPU's memory before it has loaded anything.
inline constexpr std::uint64_t kGpuOverheadBytes = 512ULL << 20;
// With less than this a process can do nothing useful.
inline constexpr std::uint64_t kGpuShareBytesMin = 1ULL << 30;

struct GpuSharing {
    int per_gpu = 1;                      // processes of ours, at most
    std::uint64_t memory_bytes_each = 0;  // that each may need beside the overhead; 0: a fair share
};

// A process of ours that has a place on it, whether or not it has begun to use it.
struct GpuTenant {
    std::uint64_t promised_bytes = 0;           // 0: a share
    std::optional<std::uint64_t> used_bytes{};  // nullopt: the driver does not show it
    int per_gpu = 0;  // that may share it with this one; 0: as many as with the next
};

struct GpuUse {
    Gpu gpu;
    std::vector<GpuTenant> tenants{};
    // Of processes that only the driver sees, which may be ours in another namespace.
    std::uint64_t hidden_bytes = 0;
};

// What a GPU has for one more, or why nothing.
struct GpuPlace {
    int free_places = 0;
    std::uint64_t memory_bytes = 0;  // for each of them; 0: not known
    std::string reason{};            // where there are none
};
GpuPlace place_on(const GpuUse& use, const GpuSharing& sharing);

// The GPU with the fewest of ours, of those the one with the most free memory. `wanted`: a UUID;
// empty: any. Code::out_of_stock says of each why not; Code::not_found: there is none.
Result<std::string> choose_gpu(
    const std::vector<GpuUse>& uses, const GpuSharing& sharing, const std::string& wanted
);

}  // namespace comfyd::fleet
