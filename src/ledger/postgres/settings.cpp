#include "ledger/postgres/settings.hpp"

#include <utility>

#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger::postgres {
namespace {

// Everything here is found by key or in the order of an index, whatever the statistics say: those
// of a table that grows are always late, and a plan that reads all of it would be made just then.
constexpr const char* kSettings[] = {
    "SET enable_seqscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET enable_bitmapscan = off",
    "SET jit = off",
    "SET default_transaction_isolation = 'read committed'",
    "SET client_min_messages = error",
};
constexpr char kGenericPlans[] = "SET plan_cache_mode = force_generic_plan";
// What is waited for longer is held by a node that stopped in the middle of a transaction.
constexpr char kWaitShortly[] = "SET lock_timeout = '1s'";
constexpr char kReadVersion[] = "SELECT version, oldest_reader FROM schema_version";
// The lowest number that no other session holds. Whoever finds none shares the last: that costs
// waiting, nothing else.
constexpr char kTakeSlot[] =
    "SELECT n FROM generate_series(0, 254) n WHERE pg_try_advisory_lock($1::int4, n) LIMIT 1";
constexpr int kSharedSlot = 255;
// A writer sends a transaction at once: one that the server waits for the rest of was stopped.
constexpr char kEndHalfSent[] =
    "SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() "
    "AND a.wait_event = 'ClientRead' AND a.xact_start < clock_timestamp() - interval '1 second' "
    "AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND "
    "l.classid = $1::int4::oid AND "
    "l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

Statements settings() {
    Statements all;
    for (const char* setting : kSettings) {
        all.push_back({setting});
    }
    return all;
}

}  // namespace

Task<Result<Writing>> open_writing(
    Executor executor, std::string conninfo, Connection::Limits limits
) {
    Statements set = settings();
    set.push_back({kGenericPlans});
    set.push_back({kWaitShortly});
    auto connection =
        co_await Connection::open(executor, std::move(conninfo), limits, std::move(set));
    if (!connection) {
        co_return fail(std::move(connection.error()));
    }
    Statements asked{{kReadVersion}, {kTakeSlot, {static_cast<int>(LockClass::slot)}}};
    auto answers = co_await (*connection)->run(std::move(asked));
    if (!answers) {
        co_return fail(answers.error().to_error());
    }
    const Rows& version = answers->at(0);
    const int known = migrations().back().version;
    if (!version.empty() && version[0].integer(0) > known && version[0].integer(1) > known) {
        co_return fail(
            Code::schema_too_new,
            "the tables were changed by a newer comfyd, and this one cannot work with them: stop it"
        );
    }
    const Rows& slot = answers->at(1);
    co_return Writing{
        std::move(*connection), slot.empty() ? kSharedSlot : static_cast<int>(slot[0].integer(0))
    };
}

Task<Result<std::unique_ptr<Connection>>> open_reading(
    Executor executor, std::string conninfo, Connection::Limits limits
) {
    return Connection::open(executor, std::move(conninfo), limits, settings());
}

Statement end_half_sent() {
    return {kEndHalfSent, {static_cast<int>(LockClass::slot)}};
}

}  // namespace comfyd::ledger::postgres
