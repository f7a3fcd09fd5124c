#include "ledger/copy.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "ledger/copy/table_copy.hpp"
#include "ledger/postgres/partitions.hpp"
#include "ledger/postgres/schema.hpp"
#include "ledger/sqlite/lock_file.hpp"
#include "ledger/sqlite_ledger.hpp"

namespace comfyd::ledger {
namespace {

constexpr Millis kBusyTimeout{5'000};

constexpr char kIsEmpty[] =
    "SELECT NOT (EXISTS (SELECT 1 FROM jobs) OR EXISTS (SELECT 1 FROM assets) OR "
    "EXISTS (SELECT 1 FROM workflows) OR EXISTS (SELECT 1 FROM idempotency_keys) OR "
    "EXISTS (SELECT 1 FROM identities))";
// What the tables themselves know.
constexpr char kCountJobs[] =
    "INSERT INTO counters (kind, tenant, state, slot, count) "
    "SELECT 0, tenant, state, 0, count(*) FROM jobs GROUP BY tenant, state";
constexpr char kCountDeliveries[] =
    "INSERT INTO counters (kind, tenant, state, slot, count) "
    "SELECT 1, '', state, 0, count(*) FROM outbox WHERE state IN (0, 3) GROUP BY state";
constexpr char kNextWorkflow[] =
    "SELECT setval(pg_get_serial_sequence('workflows', 'number'), "
    "(SELECT coalesce(max(number), 0) + 1 FROM workflows), false)";

// The time that the id of a job begins with.
Time time_of(const Uuid& id) {
    std::int64_t ms = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        ms = ms * 256 + id.bytes[i];
    }
    return from_unix_ms(ms);
}

// Parts for the weeks that jobs are of, before they come.
Result<> make_weeks(sqlite::Database& from, copying::Target& to) {
    std::vector<Time> weeks;
    sqlite::Query query(from, "SELECT id FROM jobs");
    query.bind();
    auto read = sqlite::each_row(query, [&] {
        const Time week = postgres::week_of(time_of(query.uuid(0)));
        if (std::find(weeks.begin(), weeks.end(), week) == weeks.end()) {
            weeks.push_back(week);
        }
    });
    if (!read) {
        return read;
    }
    for (const Time week : weeks) {
        const auto is_there =
            to.ask("SELECT to_regclass('" + postgres::jobs_part(week) + "') IS NOT NULL");
        if (!is_there) {
            return fail(is_there.error());
        }
        for (const std::string& sql :
             *is_there ? std::vector<std::string>() : postgres::make_week(week, false)) {
            if (auto made = to.run(sql); !made) {
                return made;
            }
        }
    }
    return {};
}

}  // namespace

Result<> copy_ledger(
    const std::filesystem::path& sqlite,
    const std::string& postgres,
    const std::string& secret,
    Clock& clock,
    const std::function<void(std::string_view table, std::uint64_t rows)>& tell
) {
    if (secret.empty()) {
        return fail(
            Code::config_invalid,
            "secrets of clients are stored sealed: give the 'cluster.secret' of the nodes"
        );
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(sqlite, error)) {
        return fail(Code::storage_unavailable, "there is no database " + sqlite.string());
    }
    // Recovers it and brings its tables up to date.
    if (auto opened = SqliteLedger::open({.path = sqlite}, clock); !opened) {
        return fail(std::move(opened.error()));
    }
    const auto lock = sqlite::LockFile::acquire(sqlite.string() + ".lock");
    if (!lock) {
        return fail(lock.error());
    }
    const auto from = sqlite::Database::open(sqlite, sqlite::Mode::read_only, kBusyTimeout);
    if (!from) {
        return fail(from.error());
    }
    const auto conninfo = postgres::with_defaults(postgres);
    if (!conninfo) {
        return fail(conninfo.error());
    }
    if (auto migrated = postgres::migrate(*conninfo, postgres::migrations()); !migrated) {
        return migrated;
    }
    copying::Target to(*conninfo);
    if (auto begun = to.run("BEGIN"); !begun) {
        return begun;
    }
    const auto is_empty = to.ask(kIsEmpty);
    if (!is_empty) {
        return fail(is_empty.error());
    }
    if (!*is_empty) {
        return fail(
            Code::conflict,
            "there are jobs, assets, workflows or keys in PostgreSQL already; name an empty "
            "database"
        );
    }
    if (auto made = make_weeks(**from, to); !made) {
        return made;
    }
    const postgres::SecretTexts texts(secret);
    copying::Copy copy(**from, to, texts, tell);
    if (auto copied = copying::copy_jobs(copy); !copied) {
        return copied;
    }
    if (auto copied = copying::copy_others(copy); !copied) {
        return copied;
    }
    for (const char* last : {kCountJobs, kCountDeliveries, kNextWorkflow, "COMMIT", "ANALYZE"}) {
        if (auto done = to.run(last); !done) {
            return done;
        }
    }
    return {};
}

}  // namespace comfyd::ledger
