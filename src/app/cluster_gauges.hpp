// What /metrics shows of a node of several.
#pragma once

#include <cstdint>
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
    };
    std::vector<Domain> domains{};  // empty: it is no node
    bool bus_is_up = false;
    cluster::BusCounts bus{};
};

void collect(const ClusterReadings& readings, observe::Metrics::Gauges& gauges);

}  // namespace comfyd::app
