// Makes a trace: arrivals, models by Zipf's law, tenants of unequal size, priorities. The same
// options give the same trace, on any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "simulate/trace.hpp"

namespace comfyd::simulate {

enum class Arrivals {
    at_once,  // all at the beginning
    poisson,  // independent of each other
    bursty,   // groups of one tenant and one model, the groups independent of each other
};
std::optional<Arrivals> parse_arrivals(std::string_view text);

struct SyntheticOptions {
    std::uint64_t seed = 1;
    std::size_t jobs = 10'000;
    Arrivals arrivals = Arrivals::poisson;
    double rate = 1;    // jobs a second, on average
    double burst = 20;  // jobs in a burst, on average
    std::size_t models = 20;
    double zipf = 1;  // the exponent; 0: all models alike
    std::size_t tenants = 5;
    double seconds = 2;  // of a run, on the GPU type with speed 1
    double noise = 0.1;  // of its logarithm, between runs of the same kind
    double model_gb = 6;
    std::size_t sizes = 3;  // of pictures, each twice the work of the one before; 1: all alike
    double high = 0.1;      // part of the jobs with priority 8-10
    double low = 0.2;       // with priority 1-3
    double batch = 0;       // best effort
    double repeats = 0;     // part of the jobs that do the same as a recent one
    double kept_part = 0;   // of each profile: TraceProfile
};

// Code::invalid_argument.
Result<Trace> make_synthetic(const SyntheticOptions& options);

}  // namespace comfyd::simulate
