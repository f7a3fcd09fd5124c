#include "fleet/instances/start_phases.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace comfyd::fleet {

using enum InstanceState;

std::map<InstanceState, double> start_phases(const Instance& instance) {
    std::map<InstanceState, double> phases;
    std::optional<Time> before;
    std::optional<InstanceState> phase;
    const Time woken = instance.when(parked).value_or(Time());
    for (const InstanceState state : {requested, creating, pulling, starting, warming, ready}) {
        if (const auto at = instance.when(state); at && *at >= woken) {
            if (phase && before) {
                phases[*phase] = std::chrono::duration<double>(*at - *before).count();
            }
            phase = state;
            before = at;
        }
    }
    return phases;
}

void PhaseTimes::note(double seconds) {
    const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
    counts[static_cast<std::size_t>(bucket)] += 1;
    sum_s += seconds;
}

void PhaseTimes::add(const PhaseTimes& other) {
    std::ranges::transform(counts, other.counts, counts.begin(), std::plus());
    sum_s += other.sum_s;
}

}  // namespace comfyd::fleet
