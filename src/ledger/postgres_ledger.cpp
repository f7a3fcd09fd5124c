#include "ledger/postgres_ledger.hpp"

#include <algorithm>
#include <utility>

#include "ledger/postgres/job_queries.hpp"
#include "ledger/postgres/job_writes.hpp"
#include "ledger/postgres/ledger_impl.hpp"
#include "ledger/postgres/outbox_store.hpp"
#include "ledger/postgres/rollups.hpp"
#include "ledger/postgres/schema.hpp"

namespace comfyd::ledger {

PostgresLedger::PostgresLedger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

PostgresLedger::~PostgresLedger() {
    stop();
}

Result<std::unique_ptr<PostgresLedger>> PostgresLedger::open(Options options, Clock& clock) {
    auto conninfo = with_defaults(options.url);
    if (!conninfo) {
        return fail(std::move(conninfo.error()));
    }
    if (auto migrated = migrate(*conninfo, migrations()); !migrated) {
        return fail(std::move(migrated.error()));
    }
    auto impl = std::make_unique<Impl>(options, *conninfo, clock);
    return std::unique_ptr<PostgresLedger>(new PostgresLedger(std::move(impl)));
}

void PostgresLedger::stop() {
    impl_->stop();
}
Result<> PostgresLedger::healthy() const {
    return impl_->writer.healthy();
}
StorageStats PostgresLedger::storage_stats() const {
    return impl_->writer.stats();
}

Task<Result<jobs::Accepted>> PostgresLedger::accept(jobs::NewJob job) {
    auto sealed = impl_->secrets.seal(job);
    return impl_->writer.write(
        AcceptJob(std::move(job), std::move(sealed), impl_->telling),
        std::nullopt,
        Writer::Urgency::now_or_refused
    );
}
Task<Result<jobs::Accepted>> PostgresLedger::find_key(std::string tenant, std::string key) {
    return impl_->ask_one(postgres::find_key(tenant, key, impl_->clock.now()), read_key_holder);
}
Task<Result<std::optional<jobs::Job>>> PostgresLedger::find_reusable(
    std::string tenant, std::string reuse_key
) {
    return impl_->ask_one(postgres::find_reusable(tenant, reuse_key), read_found_job);
}
Task<Result<>> PostgresLedger::commit(jobs::Change change) {
    return impl_->writer.write(CommitChange(std::move(change), impl_->telling));
}
Task<Result<std::optional<jobs::Job>>> PostgresLedger::find(JobId id) {
    return impl_->ask_one(find_job(id), read_found_job);
}
Task<Result<std::optional<jobs::Spec>>> PostgresLedger::find_spec(JobId id) {
    return impl_->ask_one(postgres::find_spec(id), [this, id](const Rows& rows) {
        return read_spec(rows, id, impl_->telling);
    });
}
Task<Result<jobs::Page>> PostgresLedger::list(jobs::ListQuery query) {
    auto statement = list_jobs(query);
    return impl_->ask_one(std::move(statement), [query = std::move(query)](const Rows& rows) {
        return read_page(rows, query);
    });
}
Task<Result<std::vector<jobs::Event>>> PostgresLedger::events(JobId id, std::uint64_t after) {
    return impl_->ask(find_events(id, after), [id, after](const std::vector<Rows>& answers) {
        return read_events(answers, id, after);
    });
}
Task<Result<jobs::WebhookStatus>> PostgresLedger::webhook_status(JobId id) {
    return impl_->ask_one(
        find_webhook_status(id),
        [](const Rows& rows) -> Result<jobs::WebhookStatus> { return read_webhook_status(rows); }
    );
}
Task<Result<std::optional<jobs::Stamp>>> PostgresLedger::stamp(JobId id) {
    return impl_->ask_one(find_stamp(id), read_stamp);
}
Task<Result<jobs::StateCounts>> PostgresLedger::counts(std::optional<std::string> tenant) {
    return impl_->ask_one(count_jobs(tenant), [](const Rows& rows) -> Result<jobs::StateCounts> {
        return read_counts(rows);
    });
}

// By days, the latest first, so that no answer is large.
Task<Result<jobs::Stats>> PostgresLedger::stats(jobs::StatsQuery query) {
    constexpr Millis kSlice = std::chrono::hours(24);
    constexpr Millis kHour = std::chrono::hours(1);
    const Time first = jobs::hour_of(std::max(query.from, query.to - jobs::kStatsLife));
    jobs::StatsSum sum(query.group_by);
    for (Time last = jobs::hour_of(query.to); last >= first; last -= kSlice) {
        const Time from = std::max(first, last - kSlice + kHour);
        // It lives in this frame until it has been read.
        auto read = co_await impl_->ask_one(
            find_rollups(query.tenant, from, last),
            [&sum](const Rows& rows) { return read_rollups(rows, sum); }
        );
        if (!read) {
            co_return fail(std::move(read.error()));
        }
    }
    co_return sum.take();
}
Task<Result<std::vector<jobs::Unfinished>>> PostgresLedger::unfinished(
    std::optional<JobId> after, int limit
) {
    return impl_->ask_one(find_unfinished(after, limit), [](const Rows& rows) {
        return rows.all(read_unfinished);
    });
}
Task<Result<jobs::Purged>> PostgresLedger::purge(Time before, int limit) {
    return impl_->writer.write(
        PurgeJobs(before, limit, impl_->purge_cursor), std::nullopt, Writer::Urgency::behind
    );
}
Task<Result<>> PostgresLedger::discard(JobId id) {
    return impl_->writer.write(DiscardJob(id));
}

}  // namespace comfyd::ledger
