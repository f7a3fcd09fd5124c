#include "ledger/postgres/delivery_views.hpp"

#include <algorithm>
#include <utility>

#include "ledger/postgres/outbox_store.hpp"
#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

using notify::DeliveryKey;
using notify::DeliveryView;

#define COMFYD_LOOK_AT "10000"
#define COMFYD_COLUMNS                                                                       \
    "o.job, o.endpoint, o.sequence, o.attempts, o.created_at, o.next_attempt_at, o.tenant, " \
    "o.event, o.state, o.ended_at, o.error, o.log"
#define COMFYD_TARGET "LEFT JOIN outbox_targets t ON t.job = o.job AND t.endpoint = o.endpoint "
#define COMFYD_NEWEST " ORDER BY o.job DESC, o.endpoint DESC, o.sequence DESC "
#define COMFYD_BEFORE "(o.job, o.endpoint, o.sequence) < ($1, $2, $3) "
#define COMFYD_PAGE(condition)                                                            \
    "SELECT " COMFYD_COLUMNS ", t.target FROM (SELECT " COMFYD_COLUMNS                    \
    " FROM outbox o WHERE " COMFYD_BEFORE condition COMFYD_NEWEST "LIMIT " COMFYD_LOOK_AT \
    ") o " COMFYD_TARGET                                                                  \
    "WHERE ($4 < 0 OR o.state = $4) AND ($5 IS NULL OR o.endpoint = $5)" COMFYD_NEWEST "LIMIT $6"
#define COMFYD_END(condition)                                                 \
    "SELECT o.job, o.endpoint, o.sequence FROM outbox o WHERE " COMFYD_BEFORE \
        condition COMFYD_NEWEST "OFFSET " COMFYD_LOOK_AT " - 1 LIMIT 1"
constexpr char kPageOfAll[] = COMFYD_PAGE("");
constexpr char kPageOfTenant[] = COMFYD_PAGE("AND o.tenant = $7");
constexpr char kPageOfDead[] = COMFYD_PAGE("AND o.tenant = $7 AND o.state = 3");
constexpr char kPageOfJob[] = COMFYD_PAGE("AND o.job = $7 AND ($8 IS NULL OR o.tenant = $8)");
constexpr char kEndOfAll[] = COMFYD_END("");
constexpr char kEndOfTenant[] = COMFYD_END("AND o.tenant = $4");
constexpr char kEndOfDead[] = COMFYD_END("AND o.tenant = $4 AND o.state = 3");
constexpr char kEndOfJob[] = COMFYD_END("AND o.job = $4");
constexpr char kFind[] = "SELECT " COMFYD_COLUMNS ", t.target FROM outbox o " COMFYD_TARGET
                         "WHERE o.job = $1 AND o.endpoint = $2 AND o.sequence = $3";

#define COMFYD_COUNT                                      \
    " ON CONFLICT (kind, tenant, state, slot) DO UPDATE " \
    "SET count = counters.count + excluded.count"
#define COMFYD_COUNTED(slot, changes)                                                         \
    "counted AS (INSERT INTO counters (kind, tenant, state, slot, count) SELECT 1, '', "      \
    "c.state, " slot ", c.by * d.n FROM (SELECT count(*) AS n FROM done) d, (VALUES " changes \
    ") AS c (state, by) WHERE d.n > 0" COMFYD_COUNT ") SELECT count(*) FROM done"
#define COMFYD_DEAD                                                                \
    "FROM outbox WHERE state = 3 AND ($1 IS NULL OR tenant = $1) AND ($2 IS NULL " \
    "OR endpoint = $2) AND ($3 IS NULL OR job = $3) AND ($4 IS NULL OR sequence = $4) LIMIT $5"
#define COMFYD_PICKED \
    "picked AS (SELECT job, endpoint, sequence " COMFYD_DEAD " FOR UPDATE SKIP LOCKED)"
#define COMFYD_IS_PICKED \
    "o.job = p.job AND o.endpoint = p.endpoint AND o.sequence = p.sequence RETURNING 1), "
constexpr char kCountDead[] = "SELECT count(*) FROM (SELECT 1 " COMFYD_DEAD ") dead";
constexpr char kReplay[] =
    "WITH " COMFYD_PICKED
    ", done AS (UPDATE outbox o SET state = 0, attempts = 0, created_at = $6, "
    "next_attempt_at = $6, ended_at = NULL FROM picked p WHERE " COMFYD_IS_PICKED COMFYD_COUNTED(
        "$7", "(0, 1), (3, -1)"
    );
constexpr char kPurge[] =
    "WITH " COMFYD_PICKED
    ", done AS (DELETE FROM outbox o USING picked p WHERE " COMFYD_IS_PICKED COMFYD_COUNTED(
        "$6", "(3, -1)"
    );
constexpr char kGiveUpWaiting[] =
    "WITH picked AS (SELECT job, endpoint, sequence FROM outbox WHERE endpoint = $1 AND "
    "state = 0 AND endpoint <> '' LIMIT $2 FOR UPDATE SKIP LOCKED), "
    "done AS (UPDATE outbox o SET state = 3, ended_at = $3, error = $4 FROM picked p "
    "WHERE " COMFYD_IS_PICKED COMFYD_COUNTED("$5", "(0, -1), (3, 1)");

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

int stored_state(const std::optional<notify::DeliveryState>& state) {
    if (!state) {
        return -1;
    }
    switch (*state) {
        case notify::DeliveryState::pending:
            return static_cast<int>(OutboxState::pending);
        case notify::DeliveryState::delivered:
            return static_cast<int>(OutboxState::delivered);
        case notify::DeliveryState::dead:
            return static_cast<int>(OutboxState::dead);
    }
    return -1;
}

DeliveryView read_view(const Row& row, const Telling& telling) {
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
    if (!row.is_null(12)) {
        const auto target = telling.read_target(row.bytes(12), delivery.job, delivery.endpoint);
        delivery.target = target ? notify::decode_target(*target) : std::nullopt;
    }
    return view;
}

DeliveryKey read_key(const Row& row) {
    return {{row.uuid(0)}, row.string(1), static_cast<std::uint64_t>(row.integer(2))};
}

std::vector<Value> values_of(const notify::DeadFilter& filter, int limit) {
    const auto& one = filter.one;
    return {
        filter.tenant,
        one ? std::optional(one->endpoint) : filter.endpoint,
        one ? std::optional(one->job) : filter.job,
        one ? std::optional(one->sequence) : std::nullopt,
        limit
    };
}

}  // namespace

Statements list_deliveries(const notify::DeliveryQuery& query) {
    DeliveryKey last;
    last.job.uuid.bytes.fill(0xFF);
    if (query.cursor) {
        last = *query.cursor;
    }
    std::vector<Value> page{
        last.job,
        last.endpoint,
        last.sequence,
        stored_state(query.state),
        query.endpoint,
        std::clamp(query.limit, 1, kDeliveriesLimitMax) + 1
    };
    std::vector<Value> end{last.job, last.endpoint, last.sequence};
    if (query.job) {
        page.insert(page.end(), {*query.job, query.tenant});
        end.emplace_back(*query.job);
        return {{kPageOfJob, std::move(page)}, {kEndOfJob, std::move(end)}};
    }
    if (!query.tenant) {
        return {{kPageOfAll, std::move(page)}, {kEndOfAll, std::move(end)}};
    }
    page.emplace_back(*query.tenant);
    end.emplace_back(*query.tenant);
    const bool is_dead = query.state == notify::DeliveryState::dead;
    return {
        {is_dead ? kPageOfDead : kPageOfTenant, std::move(page)},
        {is_dead ? kEndOfDead : kEndOfTenant, std::move(end)}
    };
}

Result<notify::DeliveryPage> read_delivery_page(
    const std::vector<Rows>& answers, const notify::DeliveryQuery& query, const Telling& telling
) {
    const int limit = std::clamp(query.limit, 1, kDeliveriesLimitMax);
    const Rows& rows = answers.at(0);
    const Rows& end = answers.at(1);
    notify::DeliveryPage page;
    for (int i = 0; i < std::min(rows.size(), limit); ++i) {
        page.deliveries.push_back(read_view(rows[i], telling));
    }
    if (rows.size() > limit) {
        page.next_cursor = page.deliveries.back().key();
    } else if (!end.empty()) {
        page.next_cursor = read_key(end[0]);
    }
    return page;
}

Statement find_delivery(const DeliveryKey& key) {
    return {kFind, {key.job, key.endpoint, key.sequence}};
}

Result<std::optional<DeliveryView>> read_delivery(const Rows& rows, const Telling& telling) {
    return rows.first([&telling](const Row& row) -> Result<DeliveryView> {
        return read_view(row, telling);
    });
}

Statement count_dead(const notify::DeadFilter& filter, int limit) {
    return {kCountDead, values_of(filter, limit)};
}

Statement ReplayDead::statement(const Circumstances& at) const {
    auto values = values_of(filter_, limit_);
    values.insert(values.end(), {now_, at.slot});
    return {kReplay, std::move(values)};
}

Statement PurgeDead::statement(const Circumstances& at) const {
    auto values = values_of(filter_, limit_);
    values.emplace_back(at.slot);
    return {kPurge, std::move(values)};
}

GiveUpWaiting::GiveUpWaiting(std::string endpoint, Time now, const std::string& why, int limit)
    : endpoint_(std::move(endpoint)),
      now_(now),
      why_(why.substr(0, kDeliveryErrorBytesMax)),
      limit_(limit) {}

Statement GiveUpWaiting::statement(const Circumstances& at) const {
    return {kGiveUpWaiting, {endpoint_, limit_, now_, why_, at.slot}};
}

}  // namespace comfyd::ledger::postgres
