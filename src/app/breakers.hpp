// What /metrics shows of everything elsewhere that comfyd depends on: one series, by name.
#pragma once

#include <string>

#include "base/dependency.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

// comfyd_breaker_state{dependency}
inline void show_breaker(
    const std::string& dependency, CircuitBreaker::State state, observe::Metrics::Gauges& gauges
) {
    gauges.set(
        "comfyd_breaker_state",
        "Whether something elsewhere is asked: 0 closed, 1 open (it is away and left alone), 2 "
        "half-open (it is tried).",
        {{"dependency", dependency}},
        static_cast<double>(state)
    );
}

inline void show_breaker(const Dependency& dependency, observe::Metrics::Gauges& gauges) {
    show_breaker(dependency.name(), dependency.state(), gauges);
}

}  // namespace comfyd::app
