#include "ledger/sqlite/outbox_store.hpp"

#include <algorithm>

#include "ledger/sqlite/schema.hpp"
#include "notify/deliveries.hpp"

namespace comfyd::ledger::sqlite {
namespace {

// In SQL: 0 due, 1 blocked, 2 delivered, 3 dead (OutboxState).
constexpr char kInsert[] =
    "INSERT OR IGNORE INTO outbox (job, endpoint, sequence, tenant, event, state, attempts, "
    "created_at, next_attempt_at) VALUES (?1, ?2, ?3, ?4, ?5, "
    "EXISTS (SELECT 1 FROM outbox WHERE job = ?1 AND endpoint = ?2 AND state < 2), 0, ?6, ?7)";
constexpr char kInsertTarget[] =
    "INSERT OR IGNORE INTO outbox_targets (job, endpoint, target) VALUES (?, ?, ?)";
constexpr char kFindState[] =
    "SELECT state FROM outbox WHERE job = ? AND endpoint = ? AND sequence = ?";
constexpr char kEnd[] =
    "UPDATE outbox SET state = ?, attempts = attempts + 1, ended_at = ?, error = ?, log = ? "
    "WHERE job = ? AND endpoint = ? AND sequence = ?";
constexpr char kUnblockNext[] =
    "UPDATE outbox SET state = 0 WHERE job = ?1 AND endpoint = ?2 AND sequence = "
    "(SELECT min(sequence) FROM outbox WHERE job = ?1 AND endpoint = ?2 AND state < 2)";
constexpr char kFindWaiting[] =
    "SELECT job, sequence FROM outbox INDEXED BY outbox_waiting WHERE endpoint = ? AND state < 2 "
    "AND endpoint <> '' LIMIT ?";
constexpr char kGiveUp[] =
    "UPDATE outbox SET state = 3, ended_at = ?, error = ? "
    "WHERE job = ? AND endpoint = ? AND sequence = ?";
constexpr char kPostpone[] =
    "UPDATE outbox SET attempts = attempts + ?, next_attempt_at = ?, error = ?, log = ? "
    "WHERE job = ? AND endpoint = ? AND sequence = ? AND state < 2";
constexpr char kHasten[] =
    "UPDATE outbox SET next_attempt_at = max(?1, next_attempt_at - ?2) "
    "WHERE state < 2 AND next_attempt_at > ?1";
constexpr char kDue[] =
    "SELECT o.job, o.endpoint, o.sequence, o.attempts, o.created_at, o.next_attempt_at, t.target, "
    "o.log FROM outbox o INDEXED BY outbox_due LEFT JOIN outbox_targets t ON t.job = o.job AND "
    "t.endpoint = o.endpoint WHERE o.state = 0 AND o.next_attempt_at <= ? "
    "ORDER BY o.next_attempt_at LIMIT ?";
constexpr char kNextDue[] =
    "SELECT next_attempt_at FROM outbox INDEXED BY outbox_due WHERE state = 0 "
    "ORDER BY next_attempt_at LIMIT 1";
constexpr char kCounts[] = "SELECT state, count FROM counters WHERE kind = ?";
constexpr char kStatus[] =
    "SELECT count(*), count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3) "
    "FROM outbox WHERE job = ? AND endpoint = ''";

// The counters know only "still to be made" and "given up".
constexpr int kPending = static_cast<int>(OutboxState::due);
constexpr int kDead = static_cast<int>(OutboxState::dead);

Result<OutboxState> state_of(Session& session, const notify::Delivery& delivery) {
    Query query(session.db, kFindState);
    const auto row = query.bind(delivery.job, delivery.endpoint, delivery.sequence).next();
    if (!row) {
        return fail(row.error());
    }
    if (!*row) {
        return fail(
            Code::not_found,
            "job " + delivery.job.to_string() + " has no delivery " +
                std::to_string(delivery.sequence)
        );
    }
    return static_cast<OutboxState>(query.integer(0));
}

std::optional<std::string> shortened(const std::string& error) {
    return error.empty() ? std::nullopt : std::optional(error.substr(0, kDeliveryErrorBytesMax));
}

std::optional<std::string> log_of(const notify::Delivery& delivery) {
    return delivery.log.empty() ? std::nullopt : std::optional(notify::encode_log(delivery.log));
}

}  // namespace

Result<> add_delivery(
    Session& session, const jobs::Job& job, const jobs::Event& event, std::string_view endpoint
) {
    session.counters.add(CounterChanges::Kind::outbox, "", kPending, 1);
    return Query(session.db, kInsert)
        .bind(
            job.id,
            endpoint,
            event.sequence,
            job.tenant,
            static_cast<int>(event.type),
            event.at,
            std::min(event.at, session.now)  // the clock may have been set back since
        )
        .run();
}

Result<> add_deliveries(
    Session& session,
    const jobs::Job& job,
    const jobs::Event& event,
    const std::vector<ToldTo>& told
) {
    for (const ToldTo& one : told) {
        if (auto done = add_target(session, job.id, one.endpoint, one.target); !done) {
            return done;
        }
        if (auto done = add_delivery(session, job, event, one.endpoint); !done) {
            return done;
        }
    }
    return {};
}

Result<> add_target(
    Session& session, const JobId& job, std::string_view endpoint, std::string_view target
) {
    return Query(session.db, kInsertTarget).bind(job, endpoint, target).run();
}

Result<> EndDelivery::operator()(Session& session) {
    const auto state = state_of(session, delivery);
    if (!state) {
        return fail(state.error());
    }
    if (*state >= OutboxState::delivered) {
        return {};
    }
    const auto ended = is_delivered ? OutboxState::delivered : OutboxState::dead;
    const auto text = shortened(error);
    auto done = Query(session.db, kEnd)
                    .bind(
                        static_cast<int>(ended),
                        now,
                        text,
                        log_of(delivery),
                        delivery.job,
                        delivery.endpoint,
                        delivery.sequence
                    )
                    .run();
    if (!done) {
        return done;
    }
    session.counters.add(CounterChanges::Kind::outbox, "", kPending, -1);
    if (!is_delivered) {
        session.counters.add(CounterChanges::Kind::outbox, "", kDead, 1);
    }
    return Query(session.db, kUnblockNext).bind(delivery.job, delivery.endpoint).run();
}

Result<> PostponeDelivery::operator()(Session& session) {
    const auto state = state_of(session, delivery);
    if (!state) {
        return fail(state.error());
    }
    const auto text = shortened(error);
    return Query(session.db, kPostpone)
        .bind(
            is_attempt ? 1 : 0,
            next_attempt_at,
            text,
            log_of(delivery),
            delivery.job,
            delivery.endpoint,
            delivery.sequence
        )
        .run();
}

// Of a thread that is cut off in the middle, the rest goes on, to be found the next time.
Result<int> GiveUpWaiting::operator()(Session& session) {
    std::vector<notify::DeliveryKey> waiting;
    {
        Query query(session.db, kFindWaiting);
        query.bind(endpoint, limit);
        auto read = each_row(query, [&] {
            waiting.push_back(
                {JobId{query.uuid(0)}, endpoint, static_cast<std::uint64_t>(query.integer(1))}
            );
        });
        if (!read) {
            return fail(std::move(read.error()));
        }
    }
    const auto text = shortened(why);
    for (const notify::DeliveryKey& one : waiting) {
        auto done =
            Query(session.db, kGiveUp).bind(now, text, one.job, endpoint, one.sequence).run();
        if (!done) {
            return fail(std::move(done.error()));
        }
    }
    for (const notify::DeliveryKey& one : waiting) {
        if (auto done = Query(session.db, kUnblockNext).bind(one.job, endpoint).run(); !done) {
            return fail(std::move(done.error()));
        }
    }
    const auto count = static_cast<int>(waiting.size());
    session.counters.add(CounterChanges::Kind::outbox, "", kPending, -count);
    session.counters.add(CounterChanges::Kind::outbox, "", kDead, count);
    return count;
}

Result<> HastenDeliveries::operator()(Session& session) {
    return Query(session.db, kHasten).bind(now, by.count()).run();
}

Result<std::vector<notify::Delivery>> find_due(Database& db, Time now, int limit) {
    Query query(db, kDue);
    query.bind(now, std::clamp(limit, 1, kDueLimitMax));
    return all_rows(query, [](const Query& row) -> Result<notify::Delivery> {
        notify::Delivery delivery;
        delivery.job.uuid = row.uuid(0);
        delivery.endpoint = row.text(1);
        delivery.sequence = static_cast<std::uint64_t>(row.integer(2));
        delivery.attempts = static_cast<int>(row.integer(3));
        delivery.created_at = row.time(4);
        delivery.next_attempt_at = row.time(5);
        delivery.target = notify::decode_target(row.text(6));
        delivery.log = notify::decode_log(row.text(7));
        return delivery;
    });
}

Result<std::optional<Time>> find_next_due(Database& db) {
    Query query(db, kNextDue);
    const auto row = query.bind().next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? std::optional(query.time(0)) : std::nullopt;
}

Result<notify::Outbox::Counts> count_deliveries(Database& db) {
    notify::Outbox::Counts counts;
    Query query(db, kCounts);
    query.bind(static_cast<int>(CounterChanges::Kind::outbox));
    auto read = each_row(query, [&] {
        const auto count = static_cast<std::uint64_t>(query.integer(1));
        (query.integer(0) == kDead ? counts.dead : counts.pending) = count;
    });
    return read ? Result<notify::Outbox::Counts>(counts) : fail(std::move(read.error()));
}

Result<jobs::WebhookStatus> find_webhook_status(Database& db, const JobId& id) {
    Query query(db, kStatus);
    const auto row = query.bind(id).next();
    if (!row) {
        return fail(row.error());
    }
    jobs::WebhookStatus status;
    status.any = query.integer(0) > 0;
    status.delivered = status.any && query.integer(1) == query.integer(0);
    status.dead = query.integer(2) > 0;
    return status;
}

}  // namespace comfyd::ledger::sqlite
