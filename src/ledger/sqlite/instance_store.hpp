// The tables of the fleet's instances, pools and events.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fleet/instances/store.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

struct SaveInstance {
    using Value = void;
    fleet::Instance instance;
    std::optional<fleet::FleetEvent> event;

    std::size_t bytes() const { return 2048; }
    Result<> operator()(Session& session);
};
struct SavePool {
    using Value = void;
    fleet::PoolRecord record;
    std::optional<fleet::FleetEvent> event;

    std::size_t bytes() const { return 1024; }
    Result<> operator()(Session& session);
};
struct NoteFleetEvent {
    using Value = void;
    fleet::FleetEvent event;

    std::size_t bytes() const { return 512; }
    Result<> operator()(Session& session);
};

Result<std::vector<fleet::Instance>> find_open_instances(Database& db, const std::string& fleet);
Result<std::vector<fleet::Instance>> find_ended_instances(
    Database& db, const std::string& fleet, int limit
);
Result<std::vector<fleet::PoolRecord>> find_pool_records(Database& db, const std::string& fleet);
Result<std::vector<fleet::FleetEvent>> find_fleet_events(
    Database& db, const fleet::FleetEventQuery& query
);
Result<std::vector<fleet::FleetEvent>> find_fleet_events_after(
    Database& db, const std::string& fleet, fleet::FleetEventPlace after, int limit
);

}  // namespace comfyd::ledger::sqlite
