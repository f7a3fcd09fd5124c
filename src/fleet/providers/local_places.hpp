// Where on this computer the next process goes: which GPU, and which ports. Blocks: for a pool.
// Any thread; whoever gives places away takes care that no other does so at the same time.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/gpus.hpp"
#include "fleet/providers/machines.hpp"
#include "fleet/providers/process.hpp"
#include "fleet/providers/process_record.hpp"

namespace comfyd::fleet {

// By which all processes of a machine are known; its value is the machine's folder. The agent hands
// names of this kind on to ComfyUI.
inline constexpr const char* kMachineVariable = "COMFYUI_MACHINE";

class LocalPlaces {
public:
    explicit LocalPlaces(const ProcessOptions& options)  // which outlive it
        : options_(options), gpus_(options.gpus) {}

    // Beside those that there are. Code::not_found: no GPU can be found.
    Result<std::vector<Offer>> offers(const OfferWish& wish, const std::vector<ProcessRecord>& all)
        const;
    // Fills in GPU, memory and ports. Code::out_of_stock, Code::not_found.
    Result<> reserve(
        ProcessRecord& record, const std::string& offer, const std::vector<ProcessRecord>& all
    ) const;

private:
    Result<std::vector<GpuUse>> gpu_uses(const std::vector<ProcessRecord>& all) const;
    GpuUse use_of(const Gpu& gpu, const std::vector<ProcessRecord>& all) const;
    // Of machines of which so many may share a GPU; 0: as the settings say.
    GpuSharing sharing_of(int per_gpu) const;
    // Where the GPUs are not ours to give, all together share one.
    int places_anywhere(int per_gpu, const std::vector<ProcessRecord>& all) const;
    Result<> reserve_gpu(
        ProcessRecord& record, const std::string& offer, const std::vector<ProcessRecord>& all
    ) const;
    Result<int> free_port(const std::set<int>& taken) const;

    const ProcessOptions& options_;
    const GpuReader gpus_;
};

}  // namespace comfyd::fleet
