// What running a job took: time, memory, pictures and money. Measured by the fleet for each attempt
// and summed up over the attempts of a job. Plain values.
#pragma once

#include <cstdint>
#include <optional>

#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::jobs {

struct Usage {
    Millis gpu{};         // on a worker with a GPU; none in the embedded engine
    Millis model_load{};  // of the run, until models were where they are needed
    Millis inference{};   // the rest of the run
    int images = 0;       // pictures made
    int models = 0;       // different models that the workflow names
    int model_loads = 0;  // nodes that had to load a model; the others had theirs still
    // The most that was seen on the machine while it ran; nullopt: nobody looked, or it cannot
    // tell.
    std::optional<std::uint64_t> vram_peak_bytes;
    std::optional<std::uint64_t> ram_peak_bytes;
    std::optional<double> gpu_percent;  // mean
    std::optional<double> cpu_percent;  // mean
    double gpu_second_usd = 0;          // price of the worker
    double cost_usd = 0;                // see cost_of()

    // What another attempt of the same job used: times, pictures and costs are summed, of the
    // machine's readings the larger ones are kept.
    void add(const Usage& attempt);

    json::object to_json() const;
    static Usage from_json(const json::object& from);

    bool operator==(const Usage&) const = default;
};

// GPU-seconds times their price, and half as much again for every 24 GiB of GPU memory.
double cost_of(const Usage& attempt);

}  // namespace comfyd::jobs
