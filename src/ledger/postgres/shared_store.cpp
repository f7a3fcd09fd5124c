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
constexpr char kArrivals[] =
    "SELECT " COMFYD_PG_JOB_COLUMNS
    ", s.requirement, s.profile, j.arrival, x.sealed FROM jobs j" COMFYD_PG_JOB_JOINS
    "LEFT JOIN job_secrets x ON x.job = j.id "
    "WHERE j.domain = $1 AND j.outcome IS NULL AND (j.arrival, j.id) > ($2::text::xid8, $3) "
    "AND NOT pg_visible_in_snapshot(j.arrival, $5::text::pg_snapshot) "
    "ORDER BY j.arrival, j.id LIMIT $4";

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

}  // namespace

Statements find_arrivals(const std::string& domain, const jobs::ArrivalCursor& after, int limit) {
    const std::string seen = after.seen.empty() ? kNothingSeen : after.seen;
    return {
        {kSnapshot},
        {kArrivals, {domain, std::to_string(after.transaction), after.job, page_of(limit), seen}},
    };
}

Result<jobs::ArrivalPage> read_arrivals(
    const std::vector<Rows>& answers, const jobs::ArrivalCursor& after, int limit
) {
    const Rows& rows = answers.at(1);
    auto found = rows.all(read_arrival);
    if (!found) {
        return fail(std::move(found.error()));
    }
    jobs::ArrivalPage page;
    page.jobs = std::move(*found);
    page.more = rows.size() == page_of(limit);
    // As it was before the first page: while the others were read, earlier transactions may have
    // been committed.
    const bool is_first = after.next_reading == 0;
    const Row now = answers.at(0)[0];
    const std::uint64_t next_reading =
        is_first ? static_cast<std::uint64_t>(now.integer(0)) : after.next_reading;
    std::string sees = is_first ? now.string(1) : after.sees;
    if (page.more) {
        const Row last = rows[rows.size() - 1];
        page.next.transaction = static_cast<std::uint64_t>(last.integer(kJobColumnCount + 2));
        page.next.job = page.jobs.back().job.id;
        page.next.next_reading = next_reading;
        page.next.seen = after.seen;
        page.next.sees = std::move(sees);
    } else {
        page.next.transaction = next_reading;
        page.next.seen = std::move(sees);
    }
    return page;
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
