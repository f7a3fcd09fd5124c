#include "ledger/sqlite/delivery_views.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "ledger/sqlite/schema.hpp"

namespace comfyd::ledger::sqlite {
namespace {

using notify::DeadFilter;
using notify::DeliveryKey;
using notify::DeliveryView;

#define COMFYD_VIEW                                                                       \
    "SELECT o.job, o.endpoint, o.sequence, o.attempts, o.created_at, o.next_attempt_at, " \
    "o.tenant, o.event, o.state, o.ended_at, o.error, o.log, t.target FROM outbox o "
#define COMFYD_TARGET "LEFT JOIN outbox_targets t ON t.job = o.job AND t.endpoint = o.endpoint "
#define COMFYD_NEXT                                                                      \
    "(o.job, o.endpoint, o.sequence) < (?, ?, ?) ORDER BY o.job DESC, o.endpoint DESC, " \
    "o.sequence DESC LIMIT ?"
constexpr char kFind[] =
    COMFYD_VIEW COMFYD_TARGET "WHERE o.job = ? AND o.endpoint = ? AND o.sequence = ?";
constexpr char kOfAll[] = COMFYD_VIEW COMFYD_TARGET "WHERE " COMFYD_NEXT;
constexpr char kOfTenant[] =
    COMFYD_VIEW "INDEXED BY outbox_by_tenant " COMFYD_TARGET "WHERE o.tenant = ? AND " COMFYD_NEXT;
constexpr char kDeadOfTenant[] = COMFYD_VIEW "INDEXED BY outbox_dead " COMFYD_TARGET
                                             "WHERE o.tenant = ? AND o.state = 3 AND " COMFYD_NEXT;
constexpr char kOfJob[] = COMFYD_VIEW COMFYD_TARGET "WHERE o.job = ? AND " COMFYD_NEXT;

constexpr char kFindDead[] =
    "SELECT job, endpoint, sequence FROM outbox INDEXED BY outbox_dead WHERE state = 3 "
    "AND (?1 IS NULL OR tenant = ?1) AND (?2 IS NULL OR endpoint = ?2) AND (?3 IS NULL OR job = "
    "?3) LIMIT ?4";
constexpr char kFindOneDead[] =
    "SELECT job, endpoint, sequence FROM outbox WHERE job = ? AND endpoint = ? AND sequence = ? "
    "AND state = 3 AND tenant = coalesce(?, tenant)";
// Whatever of its thread waits, waits behind it if it is older.
constexpr char kBlock[] =
    "UPDATE outbox SET state = 1 WHERE job = ? AND endpoint = ? AND state = 0";
constexpr char kRevive[] =
    "UPDATE outbox SET state = 1, attempts = 0, created_at = ?1, next_attempt_at = ?1, "
    "ended_at = NULL WHERE job = ?2 AND endpoint = ?3 AND sequence = ?4";
constexpr char kUnblockNext[] =
    "UPDATE outbox SET state = 0 WHERE job = ?1 AND endpoint = ?2 AND sequence = "
    "(SELECT min(sequence) FROM outbox WHERE job = ?1 AND endpoint = ?2 AND state < 2)";
constexpr char kDrop[] = "DELETE FROM outbox WHERE job = ? AND endpoint = ? AND sequence = ?";

constexpr int kPending = static_cast<int>(OutboxState::due);
constexpr int kDead = static_cast<int>(OutboxState::dead);

notify::DeliveryState state_of(std::int64_t stored) {
    switch (static_cast<OutboxState>(stored)) {
        case OutboxState::delivered:
            return notify::DeliveryState::delivered;
        case OutboxState::dead:
            return notify::DeliveryState::dead;
        default:
            return notify::DeliveryState::pending;
    }
}

DeliveryView read_view(const Query& row) {
    DeliveryView view;
    notify::Delivery& delivery = view.delivery;
    delivery.job.uuid = row.uuid(0);
    delivery.endpoint = row.text(1);
    delivery.sequence = static_cast<std::uint64_t>(row.integer(2));
    delivery.attempts = static_cast<int>(row.integer(3));
    delivery.created_at = row.time(4);
    delivery.next_attempt_at = row.time(5);
    view.tenant = row.text(6);
    view.event = static_cast<jobs::EventType>(row.integer(7));
    view.state = state_of(row.integer(8));
    view.ended_at = row.optional_time(9);
    view.error = row.text(10);
    delivery.log = notify::decode_log(row.text(11));
    delivery.target = notify::decode_target(row.text(12));
    return view;
}

bool matches(const notify::DeliveryQuery& query, const DeliveryView& view) {
    return (!query.state || *query.state == view.state) &&
           (!query.endpoint || *query.endpoint == view.delivery.endpoint) &&
           (!query.tenant || *query.tenant == view.tenant);
}

Result<std::vector<DeliveryKey>> find_dead(Database& db, const DeadFilter& filter, int limit) {
    const auto read_key = [](const Query& row) -> Result<DeliveryKey> {
        return DeliveryKey{
            JobId{row.uuid(0)}, row.string(1), static_cast<std::uint64_t>(row.integer(2))
        };
    };
    if (filter.one) {
        Query query(db, kFindOneDead);
        query.bind(filter.one->job, filter.one->endpoint, filter.one->sequence, filter.tenant);
        return all_rows(query, read_key);
    }
    Query query(db, kFindDead);
    query.bind(filter.tenant, filter.endpoint, filter.job, limit);
    return all_rows(query, read_key);
}

Result<> revive(Session& session, const DeliveryKey& key, Time now) {
    auto blocked = Query(session.db, kBlock).bind(key.job, key.endpoint).run();
    if (!blocked) {
        return blocked;
    }
    auto revived = Query(session.db, kRevive).bind(now, key.job, key.endpoint, key.sequence).run();
    if (!revived) {
        return revived;
    }
    return Query(session.db, kUnblockNext).bind(key.job, key.endpoint).run();
}

}  // namespace

Result<notify::DeliveryPage> list_deliveries(Database& db, const notify::DeliveryQuery& query) {
    const auto limit = static_cast<std::size_t>(std::clamp(query.limit, 1, kDeliveriesLimitMax));
    DeliveryKey newest;
    newest.job.uuid.bytes.fill(0xFF);
    const DeliveryKey from = query.cursor.value_or(newest);  // stays as it is while rows are read
    const bool is_dead = query.state == notify::DeliveryState::dead;
    const char* sql = query.job       ? kOfJob
                      : !query.tenant ? kOfAll
                      : is_dead       ? kDeadOfTenant
                                      : kOfTenant;
    Query rows(db, sql);
    if (query.job) {
        rows.bind(*query.job, from.job, from.endpoint, from.sequence, kDeliveriesLookedAtMax);
    } else if (query.tenant) {
        rows.bind(*query.tenant, from.job, from.endpoint, from.sequence, kDeliveriesLookedAtMax);
    } else {
        rows.bind(from.job, from.endpoint, from.sequence, kDeliveriesLookedAtMax);
    }
    notify::DeliveryPage page;
    DeliveryKey last = from;
    for (int looked_at = 0;; ++looked_at) {
        const auto row = rows.next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            if (looked_at == kDeliveriesLookedAtMax) {
                page.next_cursor = last;
            }
            return page;
        }
        DeliveryView view = read_view(rows);
        if (page.deliveries.size() == limit) {
            page.next_cursor = last;
            return page;
        }
        last = view.key();
        if (matches(query, view)) {
            page.deliveries.push_back(std::move(view));
        }
    }
}

Result<std::optional<DeliveryView>> find_delivery(Database& db, const DeliveryKey& key) {
    Query query(db, kFind);
    query.bind(key.job, key.endpoint, key.sequence);
    return first_row(query, [](const Query& row) -> Result<DeliveryView> {
        return read_view(row);
    });
}

Result<int> count_dead(Database& db, const DeadFilter& filter, int limit) {
    const auto dead = find_dead(db, filter, limit);
    return dead ? Result<int>(static_cast<int>(dead->size())) : fail(dead.error());
}

Result<int> ReplayDead::operator()(Session& session) {
    const auto dead = find_dead(session.db, filter, limit);
    if (!dead) {
        return fail(dead.error());
    }
    for (const DeliveryKey& key : *dead) {
        if (auto done = revive(session, key, now); !done) {
            return fail(std::move(done.error()));
        }
    }
    const auto count = static_cast<int>(dead->size());
    session.counters.add(CounterChanges::Kind::outbox, "", kDead, -count);
    session.counters.add(CounterChanges::Kind::outbox, "", kPending, count);
    return count;
}

Result<int> PurgeDead::operator()(Session& session) {
    const auto dead = find_dead(session.db, filter, limit);
    if (!dead) {
        return fail(dead.error());
    }
    for (const DeliveryKey& key : *dead) {
        auto done = Query(session.db, kDrop).bind(key.job, key.endpoint, key.sequence).run();
        if (!done) {
            return fail(std::move(done.error()));
        }
    }
    const auto count = static_cast<int>(dead->size());
    session.counters.add(CounterChanges::Kind::outbox, "", kDead, -count);
    return count;
}

}  // namespace comfyd::ledger::sqlite
