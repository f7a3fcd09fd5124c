#include "ledger/postgres/instance_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"

namespace comfyd::ledger::postgres {
namespace {

// One that is there as it is to be was saved by an attempt whose answer was lost. The event goes
// with the row, so that it is told once.
constexpr char kSaveInstance[] =
    "WITH saved AS (INSERT INTO instances (id, fleet, is_open, revision, changed_at, about, token) "
    "SELECT $1, $2, $3 = 1, $4, $5, $6, $7 "
    "WHERE $4 = 1 OR EXISTS (SELECT 1 FROM instances WHERE id = $1) "
    "ON CONFLICT (id) DO UPDATE SET is_open = excluded.is_open, revision = excluded.revision, "
    "changed_at = excluded.changed_at, about = excluded.about, token = excluded.token "
    "WHERE instances.revision = excluded.revision - 1 RETURNING 1), "
    "noted AS (INSERT INTO fleet_events (fleet, pool, instance, about) "
    "SELECT $2, $8, $1, $9 WHERE $9::text IS NOT NULL AND EXISTS (SELECT 1 FROM saved)) "
    "SELECT 1 FROM saved UNION ALL "
    "SELECT 1 FROM instances WHERE id = $1 AND revision = $4 AND about = $6";
constexpr char kForgetEnded[] =
    "DELETE FROM instances WHERE id IN (SELECT id FROM instances WHERE NOT is_open AND fleet = $1 "
    "ORDER BY changed_at DESC, id OFFSET $2 FOR UPDATE SKIP LOCKED)";
constexpr char kOpen[] =
    "SELECT about, token, id FROM instances WHERE is_open AND fleet = $1 ORDER BY id";
constexpr char kEnded[] =
    "SELECT about, token, id FROM instances WHERE NOT is_open AND fleet = $1 "
    "ORDER BY changed_at DESC, id LIMIT $2";
constexpr char kSavePool[] =
    "WITH saved AS (INSERT INTO fleet_pools (fleet, name, revision, about) "
    "SELECT $1, $2, $3, $4 "
    "WHERE $3 = 1 OR EXISTS (SELECT 1 FROM fleet_pools WHERE fleet = $1 AND name = $2) "
    "ON CONFLICT (fleet, name) DO UPDATE SET revision = excluded.revision, about = excluded.about "
    "WHERE fleet_pools.revision = excluded.revision - 1 RETURNING 1), "
    "noted AS (INSERT INTO fleet_events (fleet, pool, instance, about) "
    "SELECT $1, $2, $5, $6 WHERE $6::text IS NOT NULL AND EXISTS (SELECT 1 FROM saved)) "
    "SELECT 1 FROM saved UNION ALL "
    "SELECT 1 FROM fleet_pools WHERE fleet = $1 AND name = $2 AND revision = $3 AND about = $4";
constexpr char kPools[] = "SELECT about FROM fleet_pools WHERE fleet = $1 ORDER BY name";
constexpr char kNote[] =
    "INSERT INTO fleet_events (fleet, pool, instance, about) VALUES ($1, $2, $3, $4)";
constexpr char kForgetEvents[] =
    "DELETE FROM fleet_events WHERE number <= (SELECT max(number) FROM fleet_events) - $1";
constexpr char kEvents[] =
    "SELECT number, about, turn FROM fleet_events WHERE fleet = $1 AND number < $2 "
    "AND ($3::text IS NULL OR pool = $3) AND ($4::text IS NULL OR instance = $4) "
    "ORDER BY number DESC LIMIT $5";
// Numbers are given before a transaction is committed, so that a smaller one may show up later. No
// transaction from before the oldest one that is under way will.
constexpr char kEventsAfter[] =
    "SELECT number, about, turn FROM fleet_events WHERE fleet = $1 "
    "AND (turn, number) > ($2::text::xid8, $3) AND turn < pg_snapshot_xmin(pg_current_snapshot()) "
    "ORDER BY turn, number LIMIT $4";

std::optional<std::string> text_of(const std::optional<fleet::FleetEvent>& event) {
    return event ? std::optional(json::serialize(event->to_json())) : std::nullopt;
}

std::int64_t as_bound(std::uint64_t number) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX));
}

void forget_old_events(Batch& batch) {
    batch.add({kForgetEvents, {fleet::InstanceStore::kEventsKept}});
}

Error changed_meanwhile(std::string_view what) {
    return {Code::conflict, "the " + std::string(what) + " was changed meanwhile; read it again"};
}

}  // namespace

SaveInstance::SaveInstance(
    fleet::Instance instance, std::optional<fleet::FleetEvent> event, const SecretTexts& texts
)
    : instance_(std::move(instance)),
      event_(std::move(event)),
      about_(json::serialize(instance_.to_json())),
      token_(texts.write(
          fleet::is_open(instance_.state) ? instance_.token : std::string(), instance_.id
      )) {}

bool SaveInstance::join(Batch& batch) {
    const bool is_open = fleet::is_open(instance_.state);
    place_ = batch.add(
        {kSaveInstance,
         {instance_.id,
          instance_.fleet,
          is_open ? 1 : 0,
          instance_.revision,
          batch.at.now,
          about_,
          Bytes{token_},
          instance_.pool,
          text_of(event_)}}
    );
    if (!is_open) {
        batch.add({kForgetEnded, {instance_.fleet, fleet::InstanceStore::kEndedKept}});
    }
    if (event_) {
        forget_old_events(batch);
    }
    return true;
}

void SaveInstance::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(fail(changed_meanwhile("instance")));
    } else {
        outcome.emplace();
    }
}

bool SavePool::join(Batch& batch) {
    place_ = batch.add(
        {kSavePool,
         {record_.fleet,
          record_.name,
          record_.revision,
          json::serialize(record_.to_json()),
          event_ ? event_->instance : std::string(),
          text_of(event_)}}
    );
    if (event_) {
        forget_old_events(batch);
    }
    return true;
}

void SavePool::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(fail(changed_meanwhile("pool")));
    } else {
        outcome.emplace();
    }
}

bool NoteFleetEvent::join(Batch& batch) {
    batch.add(
        {kNote, {event_.fleet, event_.pool, event_.instance, json::serialize(event_.to_json())}}
    );
    forget_old_events(batch);
    return true;
}

Statement find_open_instances(const std::string& fleet) {
    return {kOpen, {fleet}};
}

Statement find_ended_instances(const std::string& fleet, int limit) {
    return {kEnded, {fleet, limit}};
}

Result<fleet::Instance> read_instance(const Row& row, const SecretTexts& texts) {
    const auto about = decode_object(row.text(0));
    auto instance = about ? fleet::Instance::from_json(*about) : std::nullopt;
    if (!instance) {
        return fail(damaged("instance"));
    }
    instance->token = texts.read(row.bytes(1), row.text(2)).value_or("");
    return std::move(*instance);
}

Statement find_pool_records(const std::string& fleet) {
    return {kPools, {fleet}};
}

Result<fleet::PoolRecord> read_pool_record(const Row& row) {
    const auto about = decode_object(row.text(0));
    if (!about) {
        return fail(damaged("pool"));
    }
    return fleet::PoolRecord::from_json(*about);
}

Statement find_fleet_events(const fleet::FleetEventQuery& query) {
    return {
        kEvents, {query.fleet, as_bound(query.before), query.pool, query.instance, query.limit}
    };
}

Statement find_fleet_events_after(
    const std::string& fleet, fleet::FleetEventPlace after, int limit
) {
    return {kEventsAfter, {fleet, std::to_string(after.turn), as_bound(after.number), limit}};
}

Result<fleet::FleetEvent> read_fleet_event(const Row& row) {
    const auto about = decode_object(row.text(1));
    if (!about) {
        return fail(damaged("event of the fleet"));
    }
    auto event = fleet::FleetEvent::from_json(*about);
    event.number = static_cast<std::uint64_t>(row.integer(0));
    event.turn = static_cast<std::uint64_t>(row.integer(2));
    return event;
}

}  // namespace comfyd::ledger::postgres
