#include "ledger/postgres/rollups.hpp"

#include <utility>

namespace comfyd::ledger::postgres {
namespace {

constexpr double kNanoPerUsd = 1e9;

#define COMFYD_ROLLUP_COLUMNS                                                             \
    "SELECT r.hour, r.tenant, r.workflow, r.worker, r.completed, r.failed, r.cancelled, " \
    "r.expired, r.retries, r.images, r.model_loads, r.gpu_ms, r.model_load_ms, "          \
    "r.inference_ms, r.cost_nano_usd, r.queued, r.ran "
constexpr char kReadAll[] =
    COMFYD_ROLLUP_COLUMNS "FROM rollups r WHERE r.hour BETWEEN $1 AND $2 ORDER BY r.hour DESC";
// One look-up for each hour: the rows of other tenants are not read.
constexpr char kReadTenant[] = COMFYD_ROLLUP_COLUMNS
    "FROM generate_series($2::int8, $1::int8, -3600000) h "
    "JOIN rollups r ON r.hour = h AND r.tenant = $3";

std::optional<jobs::Durations> durations_of(const std::vector<std::int64_t>& counts) {
    std::string text = counts.empty() ? "" : "0";
    for (std::size_t i = 0; i < counts.size(); ++i) {
        text += (i == 0 ? ':' : ',') + std::to_string(counts[i]);
    }
    return jobs::Durations::decode(text);
}

Result<jobs::Totals> read_totals(const Row& row) {
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
    auto queued = durations_of(row.integers(column++));
    auto ran = durations_of(row.integers(column++));
    if (!queued || !ran) {
        return fail(Code::internal, "the durations of a rollup are damaged");
    }
    totals.queued = *queued;
    totals.ran = *ran;
    return totals;
}

}  // namespace

Statement find_rollups(const std::optional<std::string>& tenant, Time first_hour, Time last_hour) {
    return tenant ? Statement{kReadTenant, {first_hour, last_hour, *tenant}}
                  : Statement{kReadAll, {first_hour, last_hour}};
}

Result<> read_rollups(const Rows& rows, jobs::StatsSum& into) {
    for (int i = 0; i < rows.size(); ++i) {
        const Row row = rows[i];
        const auto totals = read_totals(row);
        if (!totals) {
            return fail(totals.error());
        }
        into.add({row.time(0), row.string(1), row.string(2), row.string(3)}, *totals);
    }
    return {};
}

}  // namespace comfyd::ledger::postgres
