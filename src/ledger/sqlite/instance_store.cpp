#include "ledger/sqlite/instance_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kInstanceRevision[] = "SELECT revision FROM instances WHERE id = ?";
constexpr char kSaveInstance[] =
    "INSERT OR REPLACE INTO instances (id, fleet, is_open, revision, changed_at, about, token) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr char kForgetEnded[] =
    "DELETE FROM instances WHERE id IN (SELECT id FROM instances WHERE is_open = 0 AND fleet = ? "
    "ORDER BY changed_at DESC, id LIMIT -1 OFFSET ?)";
constexpr char kOpen[] =
    "SELECT about, token FROM instances WHERE is_open = 1 AND fleet = ? ORDER BY id";
constexpr char kEnded[] =
    "SELECT about, token FROM instances WHERE is_open = 0 AND fleet = ? "
    "ORDER BY changed_at DESC, id LIMIT ?";
constexpr char kPoolRevision[] = "SELECT revision FROM fleet_pools WHERE fleet = ? AND name = ?";
constexpr char kSavePool[] =
    "INSERT OR REPLACE INTO fleet_pools (fleet, name, revision, about) VALUES (?, ?, ?, ?)";
constexpr char kPools[] = "SELECT about FROM fleet_pools WHERE fleet = ? ORDER BY name";
constexpr char kNote[] =
    "INSERT INTO fleet_events (fleet, pool, instance, about) VALUES (?, ?, ?, ?)";
constexpr char kForgetEvents[] =
    "DELETE FROM fleet_events WHERE number <= (SELECT max(number) FROM fleet_events) - ?";
constexpr char kEvents[] =
    "SELECT number, about FROM fleet_events WHERE fleet = ?1 AND number < ?2 "
    "AND (?3 IS NULL OR pool = ?3) AND (?4 IS NULL OR instance = ?4) ORDER BY number DESC LIMIT ?5";
constexpr char kEventsAfter[] =
    "SELECT number, about FROM fleet_events WHERE number > ? AND fleet = ? ORDER BY number LIMIT ?";

Result<std::uint64_t> stored_revision(Query& query) {
    const auto row = query.next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

Result<> note(Database& db, const fleet::FleetEvent& event) {
    auto noted =
        Query(db, kNote)
            .bind(event.fleet, event.pool, event.instance, json::serialize(event.to_json()))
            .run();
    return noted ? Query(db, kForgetEvents).bind(fleet::InstanceStore::kEventsKept).run() : noted;
}

Result<> note(Database& db, const std::optional<fleet::FleetEvent>& event) {
    return event ? note(db, *event) : Result<>();
}

Result<std::vector<fleet::Instance>> read_instances(Query& query) {
    std::vector<fleet::Instance> instances;
    auto read = each_row(query, [&]() -> Result<> {
        const auto about = decode_object(query.text(0));
        auto instance = about ? fleet::Instance::from_json(*about) : std::nullopt;
        if (!instance) {
            return fail(damaged("instance"));
        }
        instance->token = query.string(1);
        instances.push_back(std::move(*instance));
        return {};
    });
    if (!read) {
        return fail(std::move(read.error()));
    }
    return instances;
}

Result<std::vector<fleet::FleetEvent>> read_events(Query& rows) {
    std::vector<fleet::FleetEvent> events;
    auto read = each_row(rows, [&]() -> Result<> {
        const auto about = decode_object(rows.text(1));
        if (!about) {
            return fail(damaged("event of the fleet"));
        }
        events.push_back(fleet::FleetEvent::from_json(*about));
        events.back().number = static_cast<std::uint64_t>(rows.integer(0));
        return {};
    });
    if (!read) {
        return fail(std::move(read.error()));
    }
    return events;
}

std::int64_t as_bound(std::uint64_t number) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX));
}

}  // namespace

Result<> SaveInstance::operator()(Session& session) {
    Database& db = session.db;
    const auto stored = stored_revision(Query(db, kInstanceRevision).bind(instance.id));
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored + 1 != instance.revision) {
        return fail(Code::conflict, "the instance was changed meanwhile; read it again");
    }
    const bool is_open = fleet::is_open(instance.state);
    auto done = Query(db, kSaveInstance)
                    .bind(
                        instance.id,
                        instance.fleet,
                        is_open ? 1 : 0,
                        instance.revision,
                        session.now,
                        json::serialize(instance.to_json()),
                        is_open ? instance.token : std::string()
                    )
                    .run();
    if (done && !is_open) {
        done = Query(db, kForgetEnded).bind(instance.fleet, fleet::InstanceStore::kEndedKept).run();
    }
    return done ? note(db, event) : done;
}

Result<> SavePool::operator()(Session& session) {
    Database& db = session.db;
    const auto stored = stored_revision(Query(db, kPoolRevision).bind(record.fleet, record.name));
    if (!stored) {
        return fail(stored.error());
    }
    if (*stored + 1 != record.revision) {
        return fail(Code::conflict, "the pool was changed meanwhile; read it again");
    }
    auto saved =
        Query(db, kSavePool)
            .bind(record.fleet, record.name, record.revision, json::serialize(record.to_json()))
            .run();
    return saved ? note(db, event) : saved;
}

Result<> NoteFleetEvent::operator()(Session& session) {
    return note(session.db, event);
}

Result<std::vector<fleet::Instance>> find_open_instances(Database& db, const std::string& fleet) {
    return read_instances(Query(db, kOpen).bind(fleet));
}

Result<std::vector<fleet::Instance>> find_ended_instances(
    Database& db, const std::string& fleet, int limit
) {
    return read_instances(Query(db, kEnded).bind(fleet, limit));
}

Result<std::vector<fleet::PoolRecord>> find_pool_records(Database& db, const std::string& fleet) {
    std::vector<fleet::PoolRecord> records;
    Query query(db, kPools);
    query.bind(fleet);
    auto read = each_row(query, [&]() -> Result<> {
        const auto about = decode_object(query.text(0));
        if (!about) {
            return fail(damaged("pool"));
        }
        records.push_back(fleet::PoolRecord::from_json(*about));
        return {};
    });
    if (!read) {
        return fail(std::move(read.error()));
    }
    return records;
}

Result<std::vector<fleet::FleetEvent>> find_fleet_events(
    Database& db, const fleet::FleetEventQuery& query
) {
    Query rows(db, kEvents);
    rows.bind(query.fleet, as_bound(query.before), query.pool, query.instance, query.limit);
    return read_events(rows);
}

// One process writes them one after the other: their numbers are their order.
Result<std::vector<fleet::FleetEvent>> find_fleet_events_after(
    Database& db, const std::string& fleet, fleet::FleetEventPlace after, int limit
) {
    Query rows(db, kEventsAfter);
    rows.bind(as_bound(after.number), fleet, limit);
    return read_events(rows);
}

}  // namespace comfyd::ledger::sqlite
