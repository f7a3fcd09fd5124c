// What /metrics shows of a node of several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/bus.hpp"
#include "cluster/lead.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

struct ClusterReadings {
    struct Domain {
        std::string name;
        bool is_led = false;  // by this node
        cluster::LeadCounts counts;
        Millis lag{0};  // while it is led by this node
    };
    std::vector<Domain> domains{};  // empty: it is no node
    std::optional<Millis> clock_ahead{};
    bool bus_is_up = false;
    std::optional<CircuitBreaker::State> bus_breaker{};  // nullopt: there is no Redis
    cluster::BusCounts bus{};
};

void collect(const ClusterReadings& readings, observe::Metrics::Gauges& gauges);

}  // namespace comfyd::app
