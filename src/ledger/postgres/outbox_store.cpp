#include "ledger/postgres/outbox_store.hpp"

#include <algorithm>
#include <tuple>

#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

// In SQL: 0 pending, 2 delivered, 3 dead (OutboxState).
#define COMFYD_IS_FIRST                                                                       \
    "NOT EXISTS (SELECT 1 FROM outbox e WHERE e.job = p.job AND e.endpoint = p.endpoint AND " \
    "e.sequence < p.sequence AND e.state = 0)"
#define COMFYD_THIS "job = $1 AND endpoint = $2"
#define COMFYD_COUNT                                      \
    " ON CONFLICT (kind, tenant, state, slot) DO UPDATE " \
    "SET count = counters.count + excluded.count"

constexpr char kClaimDue[] =
    "UPDATE outbox o SET next_attempt_at = $2 FROM (SELECT job, endpoint, sequence, "
    "next_attempt_at FROM outbox p WHERE state = 0 AND next_attempt_at <= $1 AND " COMFYD_IS_FIRST
    " ORDER BY next_attempt_at LIMIT $3 FOR UPDATE SKIP LOCKED) c "
    "LEFT JOIN outbox_targets t ON t.job = c.job AND t.endpoint = c.endpoint "
    "WHERE o.job = c.job AND o.endpoint = c.endpoint AND o.sequence = c.sequence "
    "RETURNING o.job, o.endpoint, o.sequence, o.attempts, o.created_at, c.next_attempt_at, "
    "t.target, o.log";
constexpr char kEnd[] =
    "WITH ended AS (UPDATE outbox SET state = $4, attempts = attempts + 1, ended_at = $5, "
    "error = $6, log = $8 WHERE " COMFYD_THIS
    " AND sequence = $3 AND state = 0 RETURNING 1), "
    "freed AS (UPDATE outbox SET next_attempt_at = least(created_at, $5) WHERE " COMFYD_THIS
    " AND sequence = (SELECT min(sequence) FROM outbox WHERE " COMFYD_THIS
    " AND sequence > $3 AND state = 0) AND EXISTS (SELECT 1 FROM ended)), "
    "counted AS (INSERT INTO counters (kind, tenant, state, slot, count) "
    "SELECT 1, '', c.state, $7, c.by FROM ended, (VALUES (0, -1), (3, 1)) AS c (state, by) "
    "WHERE c.state = 0 OR c.state = $4" COMFYD_COUNT ") SELECT 1 FROM outbox WHERE " COMFYD_THIS
    " AND sequence = $3";
// Not where somebody else has tried meanwhile, because the claim had run out.
constexpr char kPostpone[] =
    "WITH moved AS (UPDATE outbox SET attempts = attempts + $4, next_attempt_at = $5, error = $6, "
    "log = $8 WHERE " COMFYD_THIS
    " AND sequence = $3 AND state = 0 AND attempts = $7 RETURNING 1), "
    "behind AS (UPDATE outbox SET next_attempt_at = $5 WHERE " COMFYD_THIS
    " AND sequence > $3 AND state = 0 AND EXISTS (SELECT 1 FROM moved)) "
    "SELECT 1 FROM outbox WHERE " COMFYD_THIS " AND sequence = $3";
constexpr char kHasten[] =
    "UPDATE outbox SET next_attempt_at = greatest($1, next_attempt_at - $2) "
    "WHERE state = 0 AND next_attempt_at > $1";
constexpr char kNextDue[] =
    "SELECT next_attempt_at FROM outbox p WHERE state = 0 AND " COMFYD_IS_FIRST
    " ORDER BY next_attempt_at LIMIT 1";
constexpr char kCounts[] =
    "SELECT state, sum(count)::int8 FROM counters WHERE kind = 1 GROUP BY state";
constexpr char kStatus[] =
    "SELECT count(*), count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3) "
    "FROM outbox WHERE job = $1 AND endpoint = ''";

}  // namespace

bool ClaimDeliveries::join(Batch& batch) {
    place_ = batch.add({kClaimDue, {now_, now_ + kClaim, std::clamp(limit_, 1, kDueLimitMax)}});
    return true;
}

void ClaimDeliveries::conclude(const Batch& batch) {
    const Rows& rows = batch.answer(place_);
    std::vector<notify::Delivery> claimed;
    for (int i = 0; i < rows.size(); ++i) {
        const Row row = rows[i];
        notify::Delivery delivery;
        delivery.job.uuid = row.uuid(0);
        delivery.endpoint = row.text(1);
        delivery.sequence = static_cast<std::uint64_t>(row.integer(2));
        delivery.attempts = static_cast<int>(row.integer(3));
        delivery.created_at = row.time(4);
        delivery.next_attempt_at = row.time(5);
        if (!row.is_null(6)) {
            const auto target = telling_.read_target(row.bytes(6), delivery.job, delivery.endpoint);
            delivery.target = target ? notify::decode_target(*target) : std::nullopt;
        }
        delivery.log = notify::decode_log(row.text(7));
        claimed.push_back(std::move(delivery));
    }
    std::sort(claimed.begin(), claimed.end(), [](const auto& a, const auto& b) {
        return std::tie(a.next_attempt_at, a.job, a.endpoint) <
               std::tie(b.next_attempt_at, b.job, b.endpoint);
    });
    outcome.emplace(std::move(claimed));
}

NoteDelivery::NoteDelivery(notify::Delivery delivery, const std::string& error)
    : delivery_(std::move(delivery)),
      error_(error.empty() ? std::nullopt : std::optional(error.substr(0, kDeliveryErrorBytesMax))),
      log_(
          delivery_.log.empty() ? std::nullopt : std::optional(notify::encode_log(delivery_.log))
      ) {}

bool NoteDelivery::join(Batch& batch) {
    place_ = batch.add(statement(batch.at));
    return true;
}

void NoteDelivery::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(fail(
            Code::not_found,
            "job " + delivery_.job.to_string() + " has no delivery " +
                std::to_string(delivery_.sequence)
        ));
    } else {
        outcome.emplace();
    }
}

Statement EndDelivery::statement(const Circumstances& at) const {
    const auto ended = is_delivered_ ? OutboxState::delivered : OutboxState::dead;
    return {
        kEnd,
        {delivery_.job,
         delivery_.endpoint,
         delivery_.sequence,
         static_cast<int>(ended),
         now_,
         error_,
         at.slot,
         log_}
    };
}

Statement PostponeDelivery::statement(const Circumstances&) const {
    return {
        kPostpone,
        {delivery_.job,
         delivery_.endpoint,
         delivery_.sequence,
         is_attempt_ ? 1 : 0,
         next_attempt_at_,
         error_,
         delivery_.attempts,
         log_}
    };
}

bool HastenDeliveries::join(Batch& batch) {
    batch.add({kHasten, {now_, by_.count()}});
    return true;
}

Statement find_next_due() {
    return {kNextDue};
}

Statement count_deliveries() {
    return {kCounts};
}

notify::Outbox::Counts read_delivery_counts(const Rows& rows) {
    notify::Outbox::Counts counts;
    for (int i = 0; i < rows.size(); ++i) {
        const auto count = static_cast<std::uint64_t>(rows[i].integer(1));
        const bool is_dead = rows[i].integer(0) == static_cast<int>(OutboxState::dead);
        (is_dead ? counts.dead : counts.pending) = count;
    }
    return counts;
}

Statement find_webhook_status(const JobId& id) {
    return {kStatus, {id}};
}

jobs::WebhookStatus read_webhook_status(const Rows& rows) {
    jobs::WebhookStatus status;
    const Row row = rows[0];
    status.any = row.integer(0) > 0;
    status.delivered = status.any && row.integer(1) == row.integer(0);
    status.dead = row.integer(2) > 0;
    return status;
}

}  // namespace comfyd::ledger::postgres
