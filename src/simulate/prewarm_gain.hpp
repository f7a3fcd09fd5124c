// Whether loading models ahead of jobs would have paid for a trace: it is run with and without.
#pragma once

#include <string>

#include "simulate/simulator.hpp"

namespace comfyd::simulate {

struct PrewarmGain {
    // Until the result, as a load counts for whoever waits for it; seconds.
    struct Side {
        double mean_s = 0;
        double p95_s = 0;
        std::uint64_t loads = 0;
    };
    Side without;
    Side with;

    static Side side_of(const Outcome& outcome);
    // The mean or the 95th percentile is better by a hundredth at least, neither is worse by as
    // much, and there are at most half more loads.
    bool is_gain() const;
    std::string sentence() const;  // for people
};

// As simulate().
Result<PrewarmGain> find_prewarm_gain(
    const Trace& trace,
    const Fleet& fleet,
    const std::string& policy,
    Settings settings,
    const Progress& progress = {}
);

}  // namespace comfyd::simulate
