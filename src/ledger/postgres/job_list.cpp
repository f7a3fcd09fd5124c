// Listing: newest first, with filters. A tenant's jobs of some states are the merge of a run for
// each state, which an index holds sorted: so "the failed jobs of a tenant" costs the same whether
// one job in ten or one in a million failed.
#include <algorithm>
#include <utility>

#include "ledger/list_bounds.hpp"
#include "ledger/postgres/job_queries.hpp"

namespace comfyd::ledger::postgres {
namespace {

// A statement that is put together, with its parameters.
class Text {
public:
    explicit Text(Statement& of) : of_(of) {}
    Text& operator+=(std::string_view part) {
        of_.once += part;
        return *this;
    }
    // The parameter's name.
    std::string parameter(Value value) {
        of_.values.push_back(std::move(value));
        return "$" + std::to_string(of_.values.size());
    }

private:
    Statement& of_;
};

std::string condition_of(jobs::State state) {
    const std::string number = std::to_string(static_cast<int>(state));
    return jobs::is_terminal(state) ? " AND outcome = " + number
                                    : " AND outcome IS NULL AND state = " + number;
}

int page_of(const jobs::ListQuery& query) {
    return std::clamp(query.limit, 1, kListLimitMax);
}

}  // namespace

Statement list_jobs(const jobs::ListQuery& query) {
    Statement made{nullptr};
    Text text(made);
    const ListBounds bounds(query);
    std::string filter =
        "id < " + text.parameter(bounds.below) + " AND id >= " + text.parameter(bounds.from);
    if (query.tenant) {
        filter += " AND tenant = " + text.parameter(*query.tenant);
    }
    if (!query.workflow_id.empty()) {
        filter += " AND workflow_id = " + text.parameter(query.workflow_id);
    }
    if (!query.dialect.empty()) {
        filter += " AND dialect = " + text.parameter(query.dialect);
    }
    if (query.created_after) {
        filter += " AND created_at > " + text.parameter(*query.created_after);
    }
    if (query.created_before) {
        filter += " AND created_at < " + text.parameter(*query.created_before);
    }
    const std::string end = " ORDER BY id DESC LIMIT " + std::to_string(page_of(query) + 1);
    auto states = query.states;
    std::sort(states.begin(), states.end());
    states.erase(std::unique(states.begin(), states.end()), states.end());
    text += "SELECT " COMFYD_PG_JOB_COLUMNS " FROM (";
    if (states.empty()) {
        text += "SELECT id FROM jobs WHERE " + filter + end;
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
        text += i == 0 ? "(" : " UNION ALL (";
        text += "SELECT id FROM jobs WHERE " + filter + condition_of(states[i]) + end + ")";
    }
    text += ") p JOIN jobs j ON j.id = p.id" COMFYD_PG_JOB_JOINS "ORDER BY j.id DESC LIMIT ";
    text += std::to_string(page_of(query) + 1);
    return made;
}

Result<jobs::Page> read_page(const Rows& rows, const jobs::ListQuery& query) {
    auto found = rows.all(read_job<Row>);
    if (!found) {
        return fail(std::move(found.error()));
    }
    jobs::Page page;
    page.jobs = std::move(*found);
    if (page.jobs.size() > static_cast<std::size_t>(page_of(query))) {
        page.jobs.pop_back();
        page.next_cursor = page.jobs.back().id;
    }
    return page;
}

}  // namespace comfyd::ledger::postgres
