// Listing: newest first, with filters. The index (tenant, state, id) holds one run of ids per
// tenant and state, each sorted; a page is the merge of the runs that the filter names. So "the
// failed jobs of a tenant" costs the same whether one job in ten or one in a million failed.
#include <algorithm>
#include <deque>
#include <utility>

#include "ledger/list_bounds.hpp"
#include "ledger/sqlite/job_queries.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr int kRunsMax = 100;

constexpr char kRunIds[] =
    "SELECT id FROM jobs INDEXED BY jobs_by_tenant WHERE tenant = ? AND state = ? AND id < ? AND "
    "id >= ? "
    "ORDER BY id DESC LIMIT ?";
constexpr char kAllIds[] = "SELECT id FROM jobs WHERE id < ? AND id >= ? ORDER BY id DESC LIMIT ?";
constexpr char kRunsOfTenant[] =
    "SELECT tenant, state FROM counters WHERE kind = ? AND count > 0 AND tenant = ? LIMIT ?";
constexpr char kRunsOfAll[] =
    "SELECT tenant, state FROM counters WHERE kind = ? AND count > 0 LIMIT ?";

bool matches(const jobs::ListQuery& query, const jobs::Job& job) {
    const auto in_states =
        query.states.empty() ||
        std::find(query.states.begin(), query.states.end(), job.state) != query.states.end();
    return in_states && (!query.tenant || job.tenant == *query.tenant) &&
           (query.workflow_id.empty() || job.workflow_id == query.workflow_id) &&
           (query.dialect.empty() || job.dialect == query.dialect) &&
           (!query.created_after || job.created_at > *query.created_after) &&
           (!query.created_before || job.created_at < *query.created_before);
}

// Ids that fall, read in pieces. Either those of one tenant and state, or all.
class Run {
public:
    Run(JobId below, JobId from) : below_(below), from_(from), is_all_(true) {}
    Run(std::string tenant, int state, JobId below, JobId from)
        : tenant_(std::move(tenant)), state_(state), below_(below), from_(from) {}

    // Reads on where nothing is buffered; empty() afterwards means the end.
    Result<> fill(Database& db, int count) {
        if (!ids_.empty() || ended_) {
            return {};
        }
        Query query(db, is_all_ ? kAllIds : kRunIds);
        if (is_all_) {
            query.bind(below_, from_, count);
        } else {
            query.bind(tenant_, state_, below_, from_, count);
        }
        auto read = each_row(query, [&] { ids_.push_back(JobId{query.uuid(0)}); });
        ended_ = static_cast<int>(ids_.size()) < count;
        return read;
    }
    bool empty() const { return ids_.empty(); }
    const JobId& front() const { return ids_.front(); }
    void pop() {
        below_ = ids_.front();
        ids_.pop_front();
    }

private:
    std::string tenant_;
    int state_ = 0;
    JobId below_;
    JobId from_;
    bool is_all_ = false;
    std::deque<JobId> ids_;
    bool ended_ = false;
};

Result<std::vector<Run>> runs_of(Database& db, const jobs::ListQuery& query) {
    const ListBounds bounds(query);
    std::vector<Run> runs;
    if (!query.tenant && query.states.empty()) {
        runs.emplace_back(bounds.below, bounds.from);
        return runs;
    }
    constexpr int kKind = static_cast<int>(CounterChanges::Kind::jobs);
    Query known(db, query.tenant ? kRunsOfTenant : kRunsOfAll);
    if (query.tenant) {
        known.bind(kKind, *query.tenant, kRunsMax + 1);
    } else {
        known.bind(kKind, kRunsMax + 1);
    }
    int seen = 0;
    while (true) {
        const auto row = known.next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return runs;
        }
        if (++seen > kRunsMax) {
            break;
        }
        const auto state = static_cast<jobs::State>(known.integer(1));
        if (query.states.empty() ||
            std::find(query.states.begin(), query.states.end(), state) != query.states.end()) {
            runs.emplace_back(known.string(0), static_cast<int>(state), bounds.below, bounds.from);
        }
    }
    // Too many tenants to merge: looking at every job, newest first, is cheaper.
    runs.clear();
    runs.emplace_back(bounds.below, bounds.from);
    return runs;
}

Result<std::optional<JobId>> take_newest(Database& db, std::vector<Run>& runs, int count) {
    Run* newest = nullptr;
    for (Run& run : runs) {
        if (auto filled = run.fill(db, count); !filled) {
            return fail(std::move(filled.error()));
        }
        if (!run.empty() && (newest == nullptr || run.front() > newest->front())) {
            newest = &run;
        }
    }
    if (newest == nullptr) {
        return std::nullopt;
    }
    const JobId id = newest->front();
    newest->pop();
    return id;
}

}  // namespace

Result<jobs::Page> list_jobs(Database& db, const jobs::ListQuery& query) {
    const auto limit = static_cast<std::size_t>(std::clamp(query.limit, 1, kListLimitMax));
    const Snapshot snapshot(db);
    auto runs = runs_of(db, query);
    if (!runs) {
        return fail(std::move(runs.error()));
    }
    jobs::Page page;
    JobId last;
    for (int scanned = 0; scanned < kListScanMax; ++scanned) {
        const auto id = take_newest(db, *runs, static_cast<int>(limit) + 1);
        if (!id) {
            return fail(id.error());
        }
        if (!*id) {
            return page;
        }
        auto job = find_job(db, **id);
        if (!job) {
            return fail(std::move(job.error()));
        }
        if (*job && matches(query, **job)) {
            if (page.jobs.size() == limit) {
                page.next_cursor = last;
                return page;
            }
            page.jobs.push_back(std::move(**job));
        }
        last = **id;
    }
    page.next_cursor = last;
    return page;
}

}  // namespace comfyd::ledger::sqlite
