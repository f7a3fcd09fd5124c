#include "app/cluster_gauges.hpp"

#include "app/breakers.hpp"

namespace comfyd::app {
namespace {

double seconds(Millis time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

void collect(const ClusterReadings& readings, observe::Metrics::Gauges& gauges) {
    if (readings.domains.empty()) {
        return;
    }
    for (const ClusterReadings::Domain& domain : readings.domains) {
        const auto set = [&](const char* name, const char* help, auto value) {
            gauges.set(name, help, {{"domain", domain.name}}, static_cast<double>(value));
        };
        const auto lost = [&](const char* why, std::uint64_t count) {
            gauges.set(
                "comfyd_cluster_leads_lost",
                "Leads of the domain that this node lost since its start, by why.",
                {{"domain", domain.name}, {"why", why}},
                static_cast<double>(count)
            );
        };
        set("comfyd_cluster_leads", "1: this node leads the domain.", domain.is_led ? 1 : 0);
        set("comfyd_cluster_epoch",
            "Epoch in which this node led the domain last.",
            domain.counts.epoch);
        set("comfyd_cluster_leads_taken",
            "Leads of the domain that this node took since its start.",
            domain.counts.taken);
        if (domain.is_led) {
            set("comfyd_cluster_lag_seconds",
                "What other nodes left in the ledger for this leader longer ago than this is "
                "found.",
                seconds(domain.lag));
        }
        lost("taken_over", domain.counts.taken_over);
        lost("unconfirmed", domain.counts.unconfirmed);
        lost("session_lost", domain.counts.session_lost);
        lost("resigned", domain.counts.resigned);
    }
    const auto set = [&gauges](const char* name, const char* help, auto value) {
        gauges.set(name, help, {}, static_cast<double>(value));
    };
    if (readings.clock_ahead) {
        set("comfyd_cluster_clock_ahead_seconds",
            "How much later it is by this node's clock than by the database's.",
            seconds(*readings.clock_ahead));
    }
    set("comfyd_cluster_bus_up", "1: other nodes are reached over Redis.", readings.bus_is_up);
    if (readings.bus_breaker) {
        show_breaker("redis:events", *readings.bus_breaker, gauges);
    }
    set("comfyd_cluster_bus_sent", "Messages to other nodes.", readings.bus.sent);
    set("comfyd_cluster_bus_received", "Messages from other nodes.", readings.bus.received);
    set("comfyd_cluster_bus_dropped", "Messages that could not be sent.", readings.bus.dropped);
}

}  // namespace comfyd::app
