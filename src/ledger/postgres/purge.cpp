#include "ledger/postgres/purge.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/postgres/asset_store.hpp"

namespace comfyd::ledger::postgres {
namespace {

// What of an ended job decides whether it goes. Somebody else may hold its row: then it has time.
#define COMFYD_ENDED_COLUMNS                                                                       \
    "j.id, j.tenant, j.outcome, j.finished_at, EXISTS (SELECT 1 FROM outbox o WHERE o.job = j.id " \
    "AND o.state = 0) OR EXISTS (SELECT 1 FROM assets a WHERE a.job = j.id "                       \
    "AND " COMFYD_ASSET_IS_USED "), CASE WHEN s.spec LIKE '%idempotency_key%' THEN s.spec END"
constexpr char kFindEnded[] =
    "SELECT " COMFYD_ENDED_COLUMNS
    " FROM jobs j JOIN job_specs s ON s.job = j.id WHERE j.outcome IS NOT NULL AND "
    "j.finished_at < $1 AND (j.finished_at, j.id) > ($2, $3) ORDER BY j.finished_at, j.id LIMIT $4 "
    "FOR UPDATE OF j SKIP LOCKED";
constexpr char kFindOne[] =
    "SELECT " COMFYD_ENDED_COLUMNS
    " FROM jobs j JOIN job_specs s ON s.job = j.id WHERE j.id = $1 FOR UPDATE OF j";

// An output that is kept longer than its job goes by itself.
constexpr char kOutlive[] = "UPDATE assets SET job = NULL WHERE job = ANY ($1) AND expires_at > $2";
constexpr char kDropOutputs[] = "DELETE FROM assets WHERE job = ANY ($1) RETURNING hash";
constexpr char kDropKeys[] =
    "DELETE FROM idempotency_keys k USING unnest($1, $2, $3) AS n (tenant, key, job) "
    "WHERE k.tenant = n.tenant AND k.key = n.key AND k.job = n.job";
constexpr char kDropOldKeys[] =
    "DELETE FROM idempotency_keys WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency_keys "
    "WHERE created_at <= $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
constexpr char kDropEvents[] = "DELETE FROM job_events WHERE job = ANY ($1)";
constexpr char kDropResults[] = "DELETE FROM job_results WHERE job = ANY ($1)";
constexpr char kDropSpecs[] = "DELETE FROM job_specs WHERE job = ANY ($1)";
constexpr char kDropUses[] = "DELETE FROM job_assets WHERE job = ANY ($1)";
constexpr char kDropTargets[] = "DELETE FROM outbox_targets WHERE job = ANY ($1)";
#define COMFYD_COUNT                                      \
    " ON CONFLICT (kind, tenant, state, slot) DO UPDATE " \
    "SET count = counters.count + excluded.count"
constexpr char kDropDeliveries[] =
    "WITH gone AS (DELETE FROM outbox WHERE job = ANY ($1) RETURNING state) "
    "INSERT INTO counters (kind, tenant, state, slot, count) SELECT 1, '', 3, $2, -count(*) "
    "FROM gone WHERE state = 3 HAVING count(*) > 0" COMFYD_COUNT;
constexpr char kDropJobs[] =
    "WITH gone AS (DELETE FROM jobs WHERE id = ANY ($1) RETURNING tenant, state) "
    "INSERT INTO counters (kind, tenant, state, slot, count) SELECT 0, tenant, state, $2, "
    "-count(*) FROM gone GROUP BY tenant, state" COMFYD_COUNT;

// Jobs that go.
struct Ended {
    Array ids{kUuid};
    Table keys{{kText, kText, kUuid}};

    Result<> add(const Row& row) {
        const JobId id{row.uuid(0)};
        ids.add(id);
        if (!row.is_null(5)) {
            jobs::Spec spec;
            if (auto decoded = decode_spec(row.text(5), spec); !decoded) {
                return decoded;
            }
            keys.add(row.string(1), spec.idempotency_key, id);
        }
        return {};
    }
    bool empty() const { return ids.size() == 0; }
};

// Whether outputs stay whose own time has not come.
enum class Outputs { may_outlive, go };

// Hashes of the outputs that went with them.
Task<tl::expected<std::vector<std::string>, Failure>> remove(
    Transaction& transaction, Ended jobs, Outputs whose
) {
    const int slot = transaction.at.slot;
    const Time outlives = whose == Outputs::may_outlive ? transaction.at.now : Time::max();
    Statements drops{{kOutlive, {jobs.ids.value(), outlives}}, {kDropOutputs, {jobs.ids.value()}}};
    if (!jobs.keys.empty()) {
        drops.push_back(jobs.keys.statement(kDropKeys));
    }
    for (const char* drop : {kDropEvents, kDropResults, kDropSpecs, kDropUses, kDropTargets}) {
        drops.push_back({drop, {jobs.ids.value()}});
    }
    for (const char* drop : {kDropDeliveries, kDropJobs}) {
        drops.push_back({drop, {jobs.ids.value(), slot}});
    }
    auto answers = co_await transaction.ask(std::move(drops));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    std::vector<std::string> hashes;
    const Rows& dropped = answers->at(1);
    for (int i = 0; i < dropped.size(); ++i) {
        hashes.push_back(dropped[i].string(0));
    }
    co_return hashes;
}

Statements drop_contents_of(const std::vector<std::string>& hashes, Time now) {
    if (hashes.empty()) {
        return {};
    }
    Array array(kText);
    for (const std::string& hash : hashes) {
        array.add(hash);
    }
    return drop_contents(array, now);
}

}  // namespace

Task<Done> PurgeJobs::run(Transaction& transaction) {
    const int count = std::max(1, limit_);
    auto found =
        co_await transaction.ask({{kFindEnded, {before_, cursor_.finished_at, cursor_.job, count}}}
        );
    if (!found) {
        co_return tl::unexpected(std::move(found.error()));
    }
    const Rows& rows = found->at(0);
    jobs::Purged purged;
    purged.more = rows.size() == count;
    PurgeCursor cursor;
    Ended going;
    for (int i = 0; i < rows.size(); ++i) {
        if (rows[i].integer(4) == 0) {
            if (auto added = going.add(rows[i]); !added) {
                outcome.emplace(fail(std::move(added.error())));
                co_return Done();
            }
        }
        if (purged.more) {
            cursor = {rows[i].time(3), JobId{rows[i].uuid(0)}};
        }
    }
    purged.jobs = going.ids.size();
    std::vector<std::string> hashes;
    if (!going.empty()) {
        auto removed = co_await remove(transaction, std::move(going), Outputs::may_outlive);
        if (!removed) {
            co_return tl::unexpected(std::move(removed.error()));
        }
        hashes = std::move(*removed);
    }
    Statements last = drop_contents_of(hashes, transaction.at.now);
    last.push_back({kDropOldKeys, {transaction.at.now - kIdempotencyKeyLife, count}});
    auto done = co_await transaction.commit(std::move(last));
    if (done) {
        cursor_ = cursor;
        outcome.emplace(purged);
    }
    co_return done;
}

Task<Done> DiscardJob::run(Transaction& transaction) {
    auto found = co_await transaction.ask({{kFindOne, {id_}}});
    if (!found) {
        co_return tl::unexpected(std::move(found.error()));
    }
    const Rows& rows = found->at(0);
    if (rows.empty()) {
        if (transaction.at.is_again) {
            outcome.emplace();
        } else {
            outcome.emplace(fail(Code::not_found, "there is no job " + id_.to_string()));
        }
        co_return Done();
    }
    if (rows[0].is_null(2)) {
        outcome.emplace(fail(Code::conflict, "job " + id_.to_string() + " has not ended"));
        co_return Done();
    }
    if (rows[0].integer(4) != 0) {
        outcome.emplace(fail(
            Code::conflict,
            "job " + id_.to_string() +
                " is needed still: its webhook is to be delivered, or its outputs are in use"
        ));
        co_return Done();
    }
    Ended going;
    if (auto added = going.add(rows[0]); !added) {
        outcome.emplace(fail(std::move(added.error())));
        co_return Done();
    }
    auto hashes = co_await remove(transaction, std::move(going), Outputs::go);
    if (!hashes) {
        co_return tl::unexpected(std::move(hashes.error()));
    }
    auto done = co_await transaction.commit(drop_contents_of(*hashes, transaction.at.now));
    if (done) {
        outcome.emplace();
    }
    co_return done;
}

}  // namespace comfyd::ledger::postgres
