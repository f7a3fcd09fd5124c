// How long machines took to come up, by the states that they went through. Values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "fleet/instances/instance.hpp"

namespace comfyd::fleet {

// Seconds in each state, of a machine that came to serve: from the wish for it on, or since it was
// woken.
std::map<InstanceState, double> start_phases(const Instance& instance);

// Counted in buckets, for whoever draws them.
struct PhaseTimes {
    static constexpr std::array kBounds{1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0};

    std::array<std::uint64_t, kBounds.size() + 1> counts{};  // the last: of longer ones
    double sum_s = 0;

    void note(double seconds);
    void add(const PhaseTimes& other);
};

}  // namespace comfyd::fleet
