// The GPUs of this machine and who holds their memory: by NVIDIA's library where it is there, else
// by its program nvidia-smi. Blocks: for the pool, one call at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace comfyd::agent {

struct GpuProcess {
    pid_t pid = 0;
    std::uint64_t bytes = 0;
};

struct Gpu {
    int index = 0;
    std::string uuid;
    std::string name;
    std::uint64_t memory_total = 0;
    std::uint64_t memory_free = 0;
    std::vector<GpuProcess> processes{};  // as far as the driver shows them
};
// {"uuid","name","memory_total_bytes","memory_free_bytes","processes":[{"pid","memory_bytes"}]}
json::object to_json(const Gpu& gpu);

class GpuMeter {
public:
    // `visible`: CUDA_VISIBLE_DEVICES, of which alone is told; empty: of all.
    explicit GpuMeter(std::string visible);
    ~GpuMeter();
    GpuMeter(const GpuMeter&) = delete;
    GpuMeter& operator=(const GpuMeter&) = delete;

    // None: this machine has none, or nothing here can tell.
    std::vector<Gpu> read();

private:
    class Library;
    std::string visible_;
    std::unique_ptr<Library> library_;
    bool has_program_ = true;  // as far as is known
};

// Lines of `nvidia-smi --query-gpu=index,uuid,name,memory.total,memory.used
// --format=csv,noheader,nounits`; what is none is left out.
std::vector<Gpu> parse_smi(std::string_view text);
// Those that `visible` names, by number or UUID (or its beginning).
std::vector<Gpu> only_visible(std::vector<Gpu> gpus, std::string_view visible);

}  // namespace comfyd::agent
