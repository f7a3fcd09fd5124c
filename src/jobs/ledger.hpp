// What the jobs room asks of durable storage. Implemented by the ledger room (SQLite, PostgreSQL).
//
// commit() returns after the data is on disk. Reads see every commit that returned before them. All
// members may be called on any executor; a Task continues on the executor that awaited it.
// Failures: Code::storage_full, Code::storage_unavailable (locked, read-only, I/O error); nothing
// is half-written then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"
#include "jobs/stats.hpp"

namespace comfyd::jobs {

// A job to be accepted.
struct NewJob {
    Change change;
    Spec spec;  // its secret_extra_data is not stored
    // Set when a worker is free for it, or when its outputs are there already: the job is accepted
    // and started, or completed, in one step.
    std::optional<Change> then{};
    std::optional<Event> warning{};  // between the two, as warn() makes it
};

// The answer to a NewJob. When another job of the tenant holds the idempotency key, nothing was
// written and `existing` is that job, with the request_hash it was made with.
struct Accepted {
    bool created = false;
    std::optional<Job> existing;
    std::string existing_request_hash;
};

// Filters and order of a listing: newest first, cursor = id of the last job of the page before.
struct ListQuery {
    std::optional<std::string> tenant;
    std::vector<State> states;  // empty: all
    std::string workflow_id;    // empty: all
    std::string dialect;        // empty: all
    std::optional<Time> created_after;
    std::optional<Time> created_before;
    std::optional<JobId> cursor;
    int limit = 50;  // at most 1000
};
struct Page {
    std::vector<Job> jobs;
    std::optional<JobId> next_cursor;
};

// What recovery needs of a job that had not ended.
struct Unfinished {
    Job job;
    Requirement requirement;          // as in its Spec
    scheduler::ProfilePtr profile{};  // likewise
    json::object secrets{};           // as its secret_extra_data, where they are kept
    std::string sealed{};             // within the ledger room
};

struct StateCounts {
    std::uint64_t by_state[7] = {};
    std::uint64_t of(State state) const { return by_state[static_cast<int>(state)]; }
};

inline constexpr Millis kStatsLife = std::chrono::hours(24 * 400);

// One webhook delivery that is due or was given up.
struct WebhookStatus {
    bool any = false;        // the job had something to deliver
    bool delivered = false;  // everything was delivered
    bool dead = false;       // something was given up
};

// By what an answer about an ended job may be told from what would be answered now: as long as both
// are the same, so is everything that is stored of the job.
struct Stamp {
    std::string tenant;
    int revision = 0;
    bool webhook_delivered = false;  // WebhookStatus::delivered, of a job that has a webhook
};

// What a step of a purge took.
struct Purged {
    int jobs = 0;
    bool more = false;  // there may be more to do: ask again
};

class Ledger {
public:
    virtual ~Ledger() = default;

    virtual Task<Result<Accepted>> accept(NewJob job) = 0;
    // The job that holds the tenant's idempotency key now, as accept() would find it; `existing` is
    // empty where the key is free.
    virtual Task<Result<Accepted>> find_key(std::string tenant, std::string key) = 0;
    // The newest completed job of the tenant with this reuse_key that ran itself.
    virtual Task<Result<std::optional<Job>>> find_reusable(
        std::string tenant, std::string reuse_key
    ) = 0;
    // The job's row, the event, an outbox entry when the job has a webhook that wants the event,
    // the asset records of the outputs when it completed, and what stats_of() says of it: all or
    // nothing. Code::conflict when the stored revision is not change.job.revision - 1.
    virtual Task<Result<>> commit(Change change) = 0;

    virtual Task<Result<std::optional<Job>>> find(JobId id) = 0;
    virtual Task<Result<std::optional<Spec>>> find_spec(JobId id) = 0;
    virtual Task<Result<Page>> list(ListQuery query) = 0;
    // Stored events with a sequence above `after`, in order.
    virtual Task<Result<std::vector<Event>>> events(JobId id, std::uint64_t after) = 0;
    virtual Task<Result<WebhookStatus>> webhook_status(JobId id) = 0;
    // Of a job that has ended, at a fraction of what find() costs; nullopt: there is no such job,
    // it has not ended, or this ledger has none.
    virtual Task<Result<std::optional<Stamp>>> stamp(JobId id);
    virtual Task<Result<StateCounts>> counts(std::optional<std::string> tenant) = 0;
    // From sums that are kept by the hour, for kStatsLife; no job is read for it.
    virtual Task<Result<Stats>> stats(StatsQuery query) = 0;

    // For recovery, in pages by id: jobs that are not terminal, oldest first.
    virtual Task<Result<std::vector<Unfinished>>> unfinished(
        std::optional<JobId> after, int limit
    ) = 0;

    // Takes jobs that ended before `before`, the oldest first, each with all that is stored of it:
    // what was asked for, events, deliveries, keys, records of outputs. A small step, which waits
    // for writes of others; looks at no more than `limit` jobs. Those stay that are needed still:
    // a webhook is to be delivered, or an unfinished job or a named workflow takes an output.
    virtual Task<Result<Purged>> purge(Time before, int limit) = 0;
    // The same for one job, at once. Code::not_found; Code::conflict when it stays.
    virtual Task<Result<>> discard(JobId id) = 0;
};

}  // namespace comfyd::jobs
