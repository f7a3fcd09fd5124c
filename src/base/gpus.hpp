// The NVIDIA GPUs of this computer and who has how much of their memory: from the driver's own
// library (NVML) where that is to be had, else from the program nvidia-smi, else none.
//
// A driver may hang, and with it whoever asks. So each look runs on a thread of its own, which is
// left behind when its time is up; until it comes back, nobody is sent after it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace comfyd {

struct GpuProcess {
    pid_t pid = 0;  // of another namespace where that is what the driver sees
    std::optional<std::uint64_t> memory_bytes{};  // nullopt: not told
};

struct Gpu {
    std::string uuid;                      // "GPU-…": letters, digits and '-' only
    std::string name;                      // "NVIDIA H200"
    std::uint64_t memory_total_bytes = 0;  // 0: not told, as of those that share the computer's
    std::uint64_t memory_free_bytes = 0;
    std::vector<GpuProcess> processes{};  // that compute on it
};

struct GpuReading {
    std::vector<Gpu> gpus{};  // in the order of their places on the bus
    std::string source{};     // "NVML" or "nvidia-smi"; empty: neither answered
    std::string problem{};    // why not, for a person
};

struct GpuSources {
    std::string library = "libnvidia-ml.so.1";  // empty: not asked; likewise the next
    std::string program = "nvidia-smi";         // a path, or a name that is looked for in PATH
    Millis time_max{10'000};                    // for one look
};

// Any thread.
class GpuReader {
public:
    explicit GpuReader(GpuSources sources = {});
    ~GpuReader();
    GpuReader(const GpuReader&) = delete;
    GpuReader& operator=(const GpuReader&) = delete;

    // Blocks, at most for the time of the sources: for a pool.
    GpuReading look() const;

private:
    struct State;
    std::shared_ptr<State> state_;  // shared with a look that was left behind
};

}  // namespace comfyd
