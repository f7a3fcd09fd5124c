#include "ledger/postgres/shared_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/postgres/job_queries.hpp"

namespace comfyd::ledger::postgres {
namespace {

// Every transaction below the first has ended: what of them is not visible now never will be.
constexpr char kSnapshot[] = "SELECT pg_snapshot_xmin(s), s::text FROM pg_current_snapshot() AS s";
constexpr char kNothingSeen[] = "1:1:";
#define COMFYD_ARRIVALS                                                               \
    "SELECT " COMFYD_PG_JOB_COLUMNS                                                   \
    ", s.requirement, s.profile, j.arrival, x.sealed FROM jobs j" COMFYD_PG_JOB_JOINS \
    "LEFT JOIN job_secrets x ON x.job = j.id "
#define COMFYD_NEXT_ARRIVALS                                                                  \
    "WHERE j.domain = $1 AND j.outcome IS NULL AND (j.arrival, j.id) > ($2::text::xid8, $3) " \
    "AND NOT pg_visible_in_snapshot(j.arrival, $5::text::pg_snapshot) "                       \
    "ORDER BY j.arrival, j.id LIMIT $4"
constexpr char kArrivals[] = COMFYD_ARRIVALS COMFYD_NEXT_ARRIVALS;
constexpr char kGlance[] =
    "SELECT j.id, j.state, j.revision, j.arrival FROM jobs j " COMFYD_NEXT_ARRIVALS;
// Each is looked up by its key. With `id = ANY` and `outcome IS NULL` in the condition the index
// over open jobs was read from end to end, for as long as the statistics did not know how many
// there are.
constexpr char kArrived[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS
    ", s.requirement, s.profile, j.arrival, x.sealed FROM unnest($1) AS n (id) "
    "CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = n.id OFFSET 0) AS j" COMFYD_PG_JOB_JOINS
    "LEFT JOIN job_secrets x ON x.job = j.id ORDER BY j.arrival, j.id";

constexpr char kInsertWish[] =
    "INSERT INTO wishes (domain, kind, job, worker, details, at) VALUES ($1, $2, $3, $4, $5, $6)";
constexpr char kDropWishes[] = "DELETE FROM wishes WHERE id = ANY ($1)";
constexpr char kFindWishes[] =
    "SELECT id, domain, kind, job, worker, details FROM wishes WHERE domain = $1 ORDER BY id "
    "LIMIT $2";

constexpr char kAdvanced[] =
    "SELECT j.id FROM unnest($1, $2) AS n (job, sequence) JOIN jobs j ON j.id = n.job "
    "WHERE j.sequence > n.sequence";

int page_of(int limit) {
    return std::clamp(limit, 1, kArrivalLimitMax);
}

Result<jobs::Unfinished> read_arrival(const Row& row) {
    auto entry = read_unfinished(row);
    if (entry) {
        entry->sealed = row.bytes(kJobColumnCount + 3);
    }
    return entry;
}

Statement next_arrivals(
    const char* sql, const std::string& domain, const jobs::ArrivalCursor& after, int limit
) {
    const std::string seen = after.seen.empty() ? kNothingSeen : after.seen;
    return {sql, {domain, std::to_string(after.transaction), after.job, page_of(limit), seen}};
}

// The job's id is in the first column, its transaction in `column`.
jobs::ArrivalCursor next_cursor(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, bool is_more, int column
) {
    // As it was before the first page: while the others were read, earlier transactions may have
    // been committed.
    const bool is_first = after.next_reading == 0;
    const Row now = answers.at(0)[0];
    const std::uint64_t next_reading =
        is_first ? static_cast<std::uint64_t>(now.integer(0)) : after.next_reading;
    std::string sees = is_first ? now.string(1) : after.sees;
    if (!is_more) {
        return {next_reading, JobId{}, 0, std::move(sees), {}};
    }
    const Rows& rows = answers.at(1);
    const Row last = rows[rows.size() - 1];
    const auto transaction = static_cast<std::uint64_t>(last.integer(column));
    return {transaction, JobId{last.uuid(0)}, next_reading, after.seen, std::move(sees)};
}

}  // namespace

Statements find_arrivals(const std::string& domain, const jobs::ArrivalCursor& after, int limit) {
    return {{kSnapshot}, next_arrivals(kArrivals, domain, after, limit)};
}

Result<jobs::ArrivalPage> read_arrivals(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, int limit
) {
    const Rows& rows = answers.at(1);
    auto found = read_arrived(rows);
    if (!found) {
        return fail(std::move(found.error()));
    }
    jobs::ArrivalPage page;
    page.jobs = std::move(*found);
    page.more = rows.size() == page_of(limit);
    page.next = next_cursor(answers, after, page.more, kJobColumnCount + 2);
    return page;
}

Statements glance_at_arrivals(
    const std::string& domain, const jobs::ArrivalCursor& after, int limit
) {
    return {{kSnapshot}, next_arrivals(kGlance, domain, after, limit)};
}

ArrivalGlance read_glance(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, int limit
) {
    const Rows& rows = answers.at(1);
    ArrivalGlance glance;
    for (int i = 0; i < rows.size(); ++i) {
        const Row row = rows[i];
        glance.all.push_back(
            {JobId{row.uuid(0)},
             static_cast<jobs::State>(row.integer(1)),
             static_cast<int>(row.integer(2))}
        );
    }
    glance.more = rows.size() == page_of(limit);
    glance.next = next_cursor(answers, after, glance.more, 3);
    return glance;
}

Statement find_arrived(const std::vector<JobId>& ids) {
    Array asked(kUuid);
    for (const JobId& id : ids) {
        asked.add(id);
    }
    return {kArrived, {asked.value()}};
}

Result<std::vector<jobs::Unfinished>> read_arrived(const Rows& rows) {
    return rows.all(read_arrival);
}

bool AddWish::join(Batch& batch) {
    batch.add(
        {kInsertWish,
         {wish_.domain,
          static_cast<int>(wish_.kind),
          wish_.job,
          wish_.worker,
          encode(wish_.details),
          batch.at.now}}
    );
    return true;
}

bool DropWishes::join(Batch& batch) {
    Array ids(kInteger);
    for (const std::int64_t id : ids_) {
        ids.add(id);
    }
    batch.add({kDropWishes, {ids.value()}});
    return true;
}

Statement find_wishes(const std::string& domain, int limit) {
    return {kFindWishes, {domain, page_of(limit)}};
}

Result<jobs::Wish> read_wish(const Row& row) {
    jobs::Wish wish;
    wish.id = row.integer(0);
    wish.domain = row.text(1);
    wish.kind = static_cast<jobs::Wish::Kind>(row.integer(2));
    if (!row.is_null(3)) {
        wish.job = JobId{row.uuid(3)};
    }
    wish.worker = row.text(4);
    auto details = decode_object(row.text(5));
    if (!details) {
        return fail(std::move(details.error()));
    }
    wish.details = std::move(*details);
    return wish;
}

Statement find_advanced(const std::vector<jobs::Heard>& heard) {
    Table table({kUuid, kInteger});
    for (const jobs::Heard& one : heard) {
        table.add(one.job, one.sequence);
    }
    return table.statement(kAdvanced);
}

std::vector<JobId> read_advanced(const Rows& rows) {
    std::vector<JobId> jobs;
    for (int i = 0; i < rows.size(); ++i) {
        jobs.push_back(JobId{rows[i].uuid(0)});
    }
    return jobs;
}

}  // namespace comfyd::ledger::postgres
