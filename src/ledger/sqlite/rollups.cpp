#include "ledger/sqlite/rollups.hpp"

#include <sqlite3.h>

#include <cmath>
#include <exception>
#include <string_view>
#include <utility>

#include "jobs/ledger.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr double kNanoPerUsd = 1e9;

constexpr char kAddToRollup[] =
    "INSERT INTO rollups (hour, tenant, workflow, worker, completed, failed, cancelled, expired, "
    "retries, images, model_loads, gpu_ms, model_load_ms, inference_ms, cost_nano_usd, queued, ran)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (hour, tenant, workflow, worker) DO UPDATE SET "
    "completed = completed + excluded.completed, failed = failed + excluded.failed, "
    "cancelled = cancelled + excluded.cancelled, expired = expired + excluded.expired, "
    "retries = retries + excluded.retries, images = images + excluded.images, "
    "model_loads = model_loads + excluded.model_loads, gpu_ms = gpu_ms + excluded.gpu_ms, "
    "model_load_ms = model_load_ms + excluded.model_load_ms, "
    "inference_ms = inference_ms + excluded.inference_ms, "
    "cost_nano_usd = cost_nano_usd + excluded.cost_nano_usd, "
    "queued = add_durations(queued, excluded.queued), ran = add_durations(ran, excluded.ran)";
// A few at a time keep every transaction short.
constexpr char kDropOld[] =
    "DELETE FROM rollups WHERE (hour, tenant, workflow, worker) IN "
    "(SELECT hour, tenant, workflow, worker FROM rollups WHERE hour < ? ORDER BY hour LIMIT 100)";

#define COMFYD_ROLLUP_COLUMNS                                                                  \
    "hour, tenant, workflow, worker, completed, failed, cancelled, expired, retries, images, " \
    "model_loads, gpu_ms, model_load_ms, inference_ms, cost_nano_usd, queued, ran"
constexpr char kReadAll[] =
    "SELECT " COMFYD_ROLLUP_COLUMNS " FROM rollups WHERE hour BETWEEN ?1 AND ?2 ORDER BY hour DESC";
// One look-up for each hour: the rows of other tenants are not read.
constexpr char kReadTenant[] =
    "WITH RECURSIVE hours (at) AS "
    "(SELECT ?2 UNION ALL SELECT at - 3600000 FROM hours WHERE at > ?1) "
    "SELECT " COMFYD_ROLLUP_COLUMNS " FROM hours CROSS JOIN rollups ON hour = at AND tenant = ?3";

std::string_view text_of(sqlite3_value* value) {
    const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
    const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
    return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

void add_durations(sqlite3_context* context, int, sqlite3_value** values) {
    try {
        auto sum = jobs::Durations::decode(text_of(values[0]));
        const auto other = jobs::Durations::decode(text_of(values[1]));
        if (!sum || !other) {
            sqlite3_result_error(context, "the durations of a rollup are damaged", -1);
            return;
        }
        sum->add(*other);
        const std::string text = sum->encode();
        sqlite3_result_text(context, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    } catch (const std::exception&) {
        sqlite3_result_error_nomem(context);
    }
}

Result<jobs::Totals> read_totals(const Query& row) {
    const auto count = [&row](int column) {
        return static_cast<std::uint64_t>(row.integer(column));
    };
    jobs::Totals totals;
    int column = 4;
    totals.completed = count(column++);
    totals.failed = count(column++);
    totals.cancelled = count(column++);
    totals.expired = count(column++);
    totals.retries = count(column++);
    totals.images = count(column++);
    totals.model_loads = count(column++);
    totals.gpu = Millis(row.integer(column++));
    totals.model_load = Millis(row.integer(column++));
    totals.inference = Millis(row.integer(column++));
    totals.cost_usd = static_cast<double>(row.integer(column++)) / kNanoPerUsd;
    auto queued = jobs::Durations::decode(row.text(column++));
    auto ran = jobs::Durations::decode(row.text(column++));
    if (!queued || !ran) {
        return fail(Code::internal, "the durations of a rollup are damaged");
    }
    totals.queued = *queued;
    totals.ran = *ran;
    return totals;
}

Result<> sum_rows(Query& query, jobs::StatsSum& into) {
    return each_row(query, [&]() -> Result<> {
        const auto totals = read_totals(query);
        if (!totals) {
            return fail(totals.error());
        }
        into.add({query.time(0), query.string(1), query.string(2), query.string(3)}, *totals);
        return {};
    });
}

}  // namespace

Result<> Rollups::prepare(Database& db) {
    const int result = sqlite3_create_function_v2(
        db.handle(),
        "add_durations",
        2,
        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
        nullptr,
        add_durations,
        nullptr,
        nullptr,
        nullptr
    );
    return result == SQLITE_OK ? Result<>() : fail(db.error(result, "add a function"));
}

void Rollups::add(jobs::StatsEntry entry) {
    if (names_.bound(entry.key)) {
        may_have_old_ = true;
    }
    changes_[std::move(entry.key)].add(entry.totals);
}

Result<> Rollups::write(Database& db, Time now) {
    for (const auto& [key, totals] : changes_) {
        const std::string queued = totals.queued.encode();
        const std::string ran = totals.ran.encode();
        auto written = Query(db, kAddToRollup)
                           .bind(
                               key.hour,
                               key.tenant,
                               key.workflow,
                               key.worker,
                               totals.completed,
                               totals.failed,
                               totals.cancelled,
                               totals.expired,
                               totals.retries,
                               totals.images,
                               totals.model_loads,
                               totals.gpu,
                               totals.model_load,
                               totals.inference,
                               std::llround(totals.cost_usd * kNanoPerUsd),
                               queued,
                               ran
                           )
                           .run();
        if (!written) {
            return written;
        }
    }
    return !changes_.empty() && may_have_old_ ? drop_old(db, now) : Result<>();
}

Result<> Rollups::drop_old(Database& db, Time now) {
    auto dropped = Query(db, kDropOld).bind(jobs::hour_of(now - jobs::kStatsLife)).run();
    if (dropped) {
        may_have_old_ = sqlite3_changes(db.handle()) > 0;
    }
    return dropped;
}

Result<> read_rollups(
    Database& db,
    const std::optional<std::string>& tenant,
    Time first_hour,
    Time last_hour,
    jobs::StatsSum& into
) {
    if (tenant) {
        Query query(db, kReadTenant);
        return sum_rows(query.bind(first_hour, last_hour, *tenant), into);
    }
    Query query(db, kReadAll);
    return sum_rows(query.bind(first_hour, last_hour), into);
}

}  // namespace comfyd::ledger::sqlite
