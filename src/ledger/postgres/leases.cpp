#include "ledger/postgres/leases.hpp"

#include <algorithm>
#include <utility>

#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

// $1 is the domain, $2 the lock's class. The session holds it, by now or from before: taken twice,
// it would have to be let go of twice.
#define COMFYD_HOLDS_LOCK                                                                        \
    "EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND " \
    "database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "           \
    "classid = $2::int4::oid AND objid = hashtext($1)::oid AND granted)"
constexpr char kTryLock[] = "SELECT CASE WHEN " COMFYD_HOLDS_LOCK
                            " THEN true ELSE pg_try_advisory_lock($2::int4, hashtext($1)) END";
constexpr char kTryLockAgain[] = "SELECT CASE WHEN " COMFYD_HOLDS_LOCK
                                 " THEN true ELSE pg_try_advisory_lock($2::int4, hashtext($1)) END "
                                 "FROM leases WHERE domain = $1 AND epoch = $3 AND node = $4";
constexpr char kWaitForLock[] = "SELECT pg_advisory_lock($2::int4, hashtext($1))";
constexpr char kUnlock[] =
    "SELECT pg_advisory_unlock($2::int4, hashtext($1)) WHERE " COMFYD_HOLDS_LOCK
    " AND NOT EXISTS (SELECT 1 FROM leases WHERE domain = $1 AND node = $3)";
// The old holder's session ends in milliseconds; whoever else holds the row or the lock is a taker.
constexpr char kWaitShortly[] = "SET LOCAL lock_timeout = '500ms'";

constexpr char kMake[] = "INSERT INTO leases (domain) VALUES ($1) ON CONFLICT (domain) DO NOTHING";
constexpr char kLook[] =
    "SELECT epoch, node IS NULL OR expires_at < clock_timestamp() FROM leases WHERE domain = $1";
constexpr char kEndSession[] =
    "SELECT pg_terminate_backend(a.pid) FROM leases l JOIN pg_stat_activity a ON a.pid = l.backend "
    "WHERE l.domain = $1 AND a.pid <> pg_backend_pid() AND a.datname = current_database() "
    "AND a.usename = current_user";
constexpr char kTake[] =
    "UPDATE leases SET epoch = epoch + 1, node = $2, backend = pg_backend_pid(), queued = 0, "
    "quiet_at = greatest(quiet_at, expires_at + $5 * interval '1 millisecond'), "
    "expires_at = clock_timestamp() + $4 * interval '1 millisecond' "
    "WHERE domain = $1 AND epoch = $3 RETURNING epoch, "
    "(extract(epoch FROM quiet_at - clock_timestamp()) * 1000)::int8";
constexpr char kRenew[] =
    "UPDATE leases SET backend = pg_backend_pid(), queued = $4, "
    "expires_at = clock_timestamp() + $5 * interval '1 millisecond' "
    "WHERE domain = $1 AND epoch = $2 AND node = $3 RETURNING 1";
constexpr char kResign[] =
    "UPDATE leases SET node = NULL, backend = NULL, "
    "expires_at = clock_timestamp() - $4 * interval '1 millisecond' "
    "WHERE domain = $1 AND epoch = $2 AND node = $3";
constexpr char kAll[] =
    "SELECT domain, epoch, node, (extract(epoch FROM expires_at - clock_timestamp()) * "
    "1000)::int8, "
    "queued FROM leases ORDER BY domain";

constexpr int kLockClass = static_cast<int>(LockClass::lead);
constexpr char kLockNotAvailable[] = "55P03";

}  // namespace

Task<Done> TakeLease::run(Transaction& transaction) {
    auto seen = co_await transaction.ask(
        {{kMake, {domain_}}, {kTryLock, {domain_, kLockClass}}, {kLook, {domain_}}}
    );
    if (!seen) {
        co_return tl::unexpected(std::move(seen.error()));
    }
    const bool has_lock = seen->at(1)[0].integer(0) != 0;
    const bool is_free = seen->at(2)[0].integer(1) != 0;
    if (!has_lock && !is_free) {
        outcome.emplace(std::nullopt);
        co_return Done();
    }
    Statements taking{{kWaitShortly}, {kEndSession, {domain_}}};
    if (!has_lock) {
        taking.push_back({kWaitForLock, {domain_, kLockClass}});
    }
    taking.push_back(
        {kTake, {domain_, node_, seen->at(2)[0].integer(0), cluster::kLeaseLife, cluster::kSendTime}
        }
    );
    auto taken = co_await transaction.ask(std::move(taking));
    if (!taken && taken.error().state == kLockNotAvailable) {
        outcome.emplace(std::nullopt);
        co_return Done();
    }
    if (!taken) {
        co_return tl::unexpected(std::move(taken.error()));
    }
    const Rows& rows = taken->back();
    auto done = co_await transaction.commit({});
    if (done && rows.empty()) {
        outcome.emplace(std::nullopt);
    } else if (done) {
        cluster::Taken made;
        made.term = {domain_, static_cast<std::uint64_t>(rows[0].integer(0)), node_};
        made.quiet_in = std::max(Millis(0), Millis(rows[0].integer(1)));
        outcome.emplace(std::move(made));
    }
    co_return done;
}

bool RenewLease::join(Batch& batch) {
    place_ =
        batch.add({kRenew, {term_.domain, term_.epoch, term_.node, queued_, cluster::kLeaseLife}});
    // Anew, after the connection broke.
    batch.add({kTryLockAgain, {term_.domain, kLockClass, term_.epoch, term_.node}});
    return true;
}

void RenewLease::conclude(const Batch& batch) {
    if (batch.answer(place_).empty()) {
        outcome.emplace(fail(
            Code::lead_lost, "this node no longer leads '" + term_.domain + "': another one does"
        ));
    } else {
        outcome.emplace();
    }
}

bool ResignLease::join(Batch& batch) {
    batch.add({kResign, {term_.domain, term_.epoch, term_.node, cluster::kSendTime}});
    batch.add({kUnlock, {term_.domain, kLockClass, term_.node}});
    return true;
}

Statement find_leases() {
    return {kAll};
}

std::vector<cluster::Lease> read_leases(const Rows& rows) {
    std::vector<cluster::Lease> leases;
    for (int i = 0; i < rows.size(); ++i) {
        const Row row = rows[i];
        cluster::Lease lease;
        lease.term.domain = row.text(0);
        lease.term.epoch = static_cast<std::uint64_t>(row.integer(1));
        lease.term.node.uuid = row.uuid(2);
        lease.expires_in = Millis(row.integer(3));
        lease.queued = static_cast<std::uint64_t>(row.integer(4));
        leases.push_back(std::move(lease));
    }
    return leases;
}

}  // namespace comfyd::ledger::postgres
