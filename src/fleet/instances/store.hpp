// What is durable of the fleet: its instances, what operators and failures made of its pools, and
// why each instance was started or stopped. Implemented by the ledger room.
//
// An instance is written by the leader of its domain, under its term where nodes share the ledger
// (Code::lead_lost once that has ended); a pool's record by whoever an operator spoke to. Members
// may be called on any executor; a Task continues on the executor that awaited it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"
#include "fleet/instances/instance.hpp"
#include "jobs/term.hpp"

namespace comfyd::fleet {

// Beside the configuration: what was decided about a pool while comfyd runs.
struct PoolRecord {
    std::string fleet;
    std::string name;
    std::optional<int> size{};        // nullopt: as configured
    int size_configured = 0;          // when it was set; once it is another, that one counts
    std::set<std::string> leaving{};  // instances that an operator wants gone
    int failed_starts = 0;            // in a row
    std::string paused{};             // the mark of the template that is; empty: none
    std::string paused_why{};         // for people
    json::object scaling{};           // what outlives a restart of its scaling (scaling.hpp)
    std::uint64_t revision = 0;

    json::object to_json() const;
    static PoolRecord from_json(const json::object& about);
};

// Where an event stands in the order in which events are read on: whoever has read one has read all
// that stand before it, whichever nodes write.
struct FleetEventPlace {
    std::uint64_t turn = 0;
    std::uint64_t number = 0;

    friend auto operator<=>(const FleetEventPlace&, const FleetEventPlace&) = default;
};

struct FleetEvent {
    std::uint64_t number = 0;  // given by the store, like the next; they rise
    std::uint64_t turn = 0;
    Time at{};
    std::string fleet;
    std::string what;  // "requested", "created", "ready", "draining", "gone", "failed", "paused", …
    std::string why{};
    std::string pool{};
    std::string instance{};
    std::string provider{};
    std::string tenant{};
    json::object details{};

    FleetEventPlace place() const { return {turn, number}; }
    json::object to_json() const;
    static FleetEvent from_json(const json::object& about);
};

struct FleetEventQuery {
    std::string fleet;
    std::optional<std::string> pool{};
    std::optional<std::string> instance{};
    std::uint64_t before = UINT64_MAX;  // their numbers
    int limit = 100;
};

class InstanceStore {
public:
    static constexpr int kEventsKept = 10'000;
    static constexpr int kEndedKept = 500;  // instances

    virtual ~InstanceStore() = default;

    // With the event that tells of it, in one transaction. A new one has revision 1.
    // Code::conflict: the stored revision is not the one before.
    virtual Task<Result<>> save_instance(
        Instance instance, std::optional<FleetEvent> event, std::optional<jobs::Term> under
    ) = 0;
    // Of all domains, in the order of their ids.
    virtual Task<Result<std::vector<Instance>>> open_instances(std::string fleet) = 0;
    // The latest of those that have ended, the newest first; older ones are forgotten.
    virtual Task<Result<std::vector<Instance>>> ended_instances(std::string fleet, int limit) = 0;

    // Likewise with a revision.
    virtual Task<Result<>> save_pool(PoolRecord record, std::optional<FleetEvent> event) = 0;
    virtual Task<Result<std::vector<PoolRecord>>> pool_records(std::string fleet) = 0;

    virtual Task<Result<>> note_fleet_event(FleetEvent event) = 0;
    // The newest first.
    virtual Task<Result<std::vector<FleetEvent>>> fleet_events(FleetEventQuery query) = 0;
    // The next that are known for good, in the order of their places.
    virtual Task<Result<std::vector<FleetEvent>>> fleet_events_after(
        std::string fleet, FleetEventPlace after, int limit
    ) = 0;
};

}  // namespace comfyd::fleet
