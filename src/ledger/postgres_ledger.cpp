#include "ledger/postgres_ledger.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/hop.hpp"
#include "base/mutex.hpp"
#include "base/sealing.hpp"
#include "ledger/loose_blobs.hpp"
#include "ledger/postgres/asset_store.hpp"
#include "ledger/postgres/job_queries.hpp"
#include "ledger/postgres/job_writes.hpp"
#include "ledger/postgres/leases.hpp"
#include "ledger/postgres/notes.hpp"
#include "ledger/postgres/outbox_store.hpp"
#include "ledger/postgres/partitions.hpp"
#include "ledger/postgres/purge.hpp"
#include "ledger/postgres/readers.hpp"
#include "ledger/postgres/rollups.hpp"
#include "ledger/postgres/schema.hpp"
#include "ledger/postgres/shared_store.hpp"
#include "ledger/postgres/workflow_store.hpp"
#include "ledger/postgres/writer.hpp"

namespace comfyd::ledger {

using namespace postgres;

class PostgresLedger::Impl {
public:
    Impl(const Options& options, const std::string& conninfo, Clock& of_now)
        : guard_(io_.get_executor()),
          tasks_(io_.get_executor()),
          chores_(io_.get_executor()),
          readers_(
              io_.get_executor(),
              conninfo,
              {options.connect_timeout, options.answer_timeout},
              options.readers
          ),
          clock(of_now),
          sealing_(options.secret.empty() ? std::nullopt : std::optional<Sealing>(options.secret)),
          writer(io_.get_executor(), conninfo, options, of_now) {
        tasks_.spawn("ledger", writer.run());
        chores_.spawn("ledger partitions", tend_partitions());
        thread_ = std::thread([this] {
            ::pthread_setname_np(::pthread_self(), "ledger");
            io_.run();
        });
    }
    ~Impl() { stop(); }

    void stop() {
        writer.stop();
        {
            const Lock lock(mutex_);
            if (is_stopped_) {
                return;
            }
            is_stopped_ = true;
            boost::asio::post(io_, [this] {
                readers_.close();
                chores_.cancel();
            });
            guard_.reset();
        }
        thread_.join();
    }

    // What of the job only workers may read; nullopt: nothing, or it is not kept.
    std::optional<std::string> seal(const jobs::NewJob& job) const {
        const json::object& secrets = job.spec.secret_extra_data;
        return !sealing_ || secrets.empty()
                   ? std::nullopt
                   : std::optional(
                         sealing_->seal(json::serialize(secrets), job.change.job.id.to_string())
                     );
    }
    // What cannot be opened was sealed with another secret: its job runs without.
    void open(jobs::ArrivalPage& page) const {
        for (jobs::Unfinished& entry : page.jobs) {
            const auto text = sealing_ && !entry.sealed.empty()
                                  ? sealing_->open(entry.sealed, entry.job.id.to_string())
                                  : std::nullopt;
            entry.secrets =
                text ? json::parse_object(*text).value_or(json::object()) : json::object();
            entry.sealed.clear();
        }
    }

    // What `read` makes of the answers, on the executor of whoever asks.
    template <class Read>
    Task<std::invoke_result_t<Read&, const std::vector<Rows>&>> ask(
        Statements statements, Read read
    ) {
        std::optional<Guard> guard;
        {
            const Lock lock(mutex_);
            if (!is_stopped_) {
                guard.emplace(io_.get_executor());
            }
        }
        if (!guard) {
            co_return fail(Code::shutting_down, "comfyd is stopping; send the request again later");
        }
        auto answers = co_await await_on(
            io_.get_executor(), ask_guarded(std::move(*guard), std::move(statements))
        );
        if (!answers) {
            co_return fail(std::move(answers.error()));
        }
        co_return read(*answers);
    }
    template <class Read>
    auto ask_one(Statement statement, Read read) {
        Statements statements;
        statements.push_back(std::move(statement));
        return ask(std::move(statements), [read](const std::vector<Rows>& answers) {
            return read(answers.at(0));
        });
    }

private:
    using Guard = boost::asio::executor_work_guard<Executor>;

    // The guard goes where the thread is that it keeps running.
    Task<Result<std::vector<Rows>>> ask_guarded(Guard, Statements statements) {
        auto answers = co_await readers_.read(std::move(statements));
        co_return answers;
    }

    Task<> tend_partitions() {
        constexpr Millis kBetween = std::chrono::hours(1);
        while (true) {
            auto tended =
                co_await writer.write(TendPartitions(), std::nullopt, Writer::Urgency::behind);
            if (tended && *tended) {
                continue;
            }
            const bool is_time = co_await sleep_for(kBetween);
            if (!is_time) {
                co_return;
            }
        }
    }

    boost::asio::io_context io_{1};
    Guard guard_;
    TaskGroup tasks_;
    TaskGroup chores_;
    Readers readers_;
    std::thread thread_;
    Mutex mutex_;
    bool is_stopped_ COMFYD_GUARDED_BY(mutex_) = false;

public:
    Clock& clock;
    const std::optional<Sealing> sealing_;
    PurgeCursor purge_cursor;  // used by the writer
    LooseBlobs loose;
    Writer writer;
};

// The ledger as the leader of a domain uses it.
class PostgresLedger::Led final : public jobs::Ledger {
public:
    Led(PostgresLedger& whole, jobs::Term term) : whole_(whole), term_(std::move(term)) {}

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override {
        auto sealed = whole_.impl_->seal(job);
        return writer().write(
            AcceptJob(std::move(job), std::move(sealed)), term_, Writer::Urgency::now_or_refused
        );
    }
    Task<Result<>> commit(jobs::Change change) override {
        return writer().write(CommitChange(std::move(change)), term_);
    }
    Task<Result<jobs::Purged>> purge(Time before, int limit) override {
        auto& impl = *whole_.impl_;
        return writer().write(
            PurgeJobs(before, limit, impl.purge_cursor, impl.loose), term_, Writer::Urgency::behind
        );
    }
    Task<Result<>> discard(JobId id) override {
        return writer().write(DiscardJob(id, whole_.impl_->loose), term_);
    }

    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override {
        return whole_.find_key(std::move(tenant), std::move(key));
    }
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override {
        return whole_.find_reusable(std::move(tenant), std::move(reuse_key));
    }
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override { return whole_.find(id); }
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override {
        return whole_.find_spec(id);
    }
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override {
        return whole_.list(std::move(query));
    }
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override {
        return whole_.events(id, after);
    }
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override {
        return whole_.webhook_status(id);
    }
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override {
        return whole_.counts(std::move(tenant));
    }
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override {
        return whole_.stats(std::move(query));
    }
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override {
        return whole_.unfinished(after, limit);
    }

private:
    Writer& writer() { return whole_.impl_->writer; }

    PostgresLedger& whole_;
    const jobs::Term term_;
};

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
    auto sealed = impl_->seal(job);
    return impl_->writer.write(
        AcceptJob(std::move(job), std::move(sealed)), std::nullopt, Writer::Urgency::now_or_refused
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
    return impl_->writer.write(CommitChange(std::move(change)));
}
Task<Result<std::optional<jobs::Job>>> PostgresLedger::find(JobId id) {
    return impl_->ask_one(find_job(id), read_found_job);
}
Task<Result<std::optional<jobs::Spec>>> PostgresLedger::find_spec(JobId id) {
    return impl_->ask_one(postgres::find_spec(id), read_spec);
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
        PurgeJobs(before, limit, impl_->purge_cursor, impl_->loose),
        std::nullopt,
        Writer::Urgency::behind
    );
}
Task<Result<>> PostgresLedger::discard(JobId id) {
    return impl_->writer.write(DiscardJob(id, impl_->loose));
}
std::vector<std::string> PostgresLedger::take_loose() {
    return impl_->loose.take();
}

Task<Result<jobs::WorkflowSaved>> PostgresLedger::save_workflow(jobs::WorkflowSave save) {
    return impl_->writer.write(SaveWorkflow(std::move(save)));
}
Task<Result<std::optional<jobs::NamedWorkflow>>> PostgresLedger::find_workflow(jobs::WorkflowName of
) {
    return impl_->ask_one(
        postgres::find_workflow(of),
        [](const Rows& rows) -> Result<std::optional<jobs::NamedWorkflow>> {
            auto row = rows.first(read_workflow);
            if (!row) {
                return fail(std::move(row.error()));
            }
            return *row ? std::optional(std::move((*row)->workflow)) : std::nullopt;
        }
    );
}
Task<Result<std::optional<jobs::WorkflowVersion>>> PostgresLedger::find_workflow_version(
    jobs::WorkflowName of, int version
) {
    return impl_->ask_one(
        postgres::find_workflow_version(of, version),
        [](const Rows& rows) -> Result<std::optional<jobs::WorkflowVersion>> {
            return read_whole_version(rows);
        }
    );
}
Task<Result<jobs::WorkflowPage>> PostgresLedger::list_workflows(
    std::string tenant, std::string after, int limit
) {
    return impl_->ask_one(
        postgres::list_workflows(tenant, after, limit),
        [limit](const Rows& rows) { return read_workflow_page(rows, limit); }
    );
}
Task<Result<jobs::WorkflowVersionPage>> PostgresLedger::list_workflow_versions(
    jobs::WorkflowName of, std::optional<int> before, int limit
) {
    return impl_->ask_one(
        postgres::list_workflow_versions(of, before, limit),
        [limit](const Rows& rows) -> Result<jobs::WorkflowVersionPage> {
            return read_version_page(rows, limit);
        }
    );
}
Task<Result<jobs::NamedWorkflow>> PostgresLedger::set_workflow_label(
    jobs::WorkflowName of,
    std::string label,
    std::optional<int> version,
    std::optional<std::string> expected_tag
) {
    return impl_->writer.write(
        SetWorkflowLabel(std::move(of), std::move(label), version, std::move(expected_tag))
    );
}
Task<Result<jobs::NamedWorkflow>> PostgresLedger::remove_workflow_version(
    jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
) {
    return impl_->writer.write(
        RemoveWorkflowVersion(std::move(of), version, std::move(expected_tag))
    );
}
Task<Result<>> PostgresLedger::remove_workflow(
    jobs::WorkflowName of, std::optional<std::string> expected_tag
) {
    return impl_->writer.write(RemoveWorkflow(std::move(of), std::move(expected_tag)));
}

Task<Result<>> PostgresLedger::write_note(std::string name, std::string text) {
    return impl_->writer.write(WriteNote(std::move(name), std::move(text)));
}
Task<Result<std::optional<std::string>>> PostgresLedger::read_note(std::string name) {
    return impl_->ask_one(find_note(name), [](const Rows& rows) {
        return rows.first([](const Row& row) -> Result<std::string> { return row.string(0); });
    });
}

Task<Result<>> PostgresLedger::add(assets::Asset asset) {
    return impl_->writer.write(AddAsset(std::move(asset)));
}
Task<Result<std::optional<assets::Asset>>> PostgresLedger::find(AssetId id) {
    return impl_->ask_one(find_asset(id), [](const Rows& rows) { return rows.first(read_asset); });
}
Task<Result<std::optional<assets::Asset>>> PostgresLedger::find_by_hash(
    std::string tenant, std::string hash
) {
    return impl_->ask_one(find_asset_by_hash(tenant, hash), [](const Rows& rows) {
        return rows.first(read_asset);
    });
}
Task<Result<bool>> PostgresLedger::remove(AssetId id) {
    return impl_->writer.write(RemoveAsset(id));
}
Task<Result<bool>> PostgresLedger::is_referenced(std::string hash) {
    return impl_->ask_one(is_blob_referenced(hash), [](const Rows& rows) -> Result<bool> {
        return rows[0].integer(0) != 0;
    });
}
Task<Result<std::optional<std::string>>> PostgresLedger::kept_bytes(std::string hash) {
    return impl_->ask_one(find_kept_bytes(hash), [](const Rows& rows) {
        return rows.first([](const Row& row) -> Result<std::string> {
            return std::string(row.bytes(0));
        });
    });
}
Task<Result<std::vector<assets::Asset>>> PostgresLedger::expired(Time now, int limit) {
    return impl_->ask_one(find_expired_assets(now, limit), [](const Rows& rows) {
        return rows.all(read_asset);
    });
}

Task<Result<std::vector<notify::Delivery>>> PostgresLedger::due(Time now, int limit) {
    return impl_->writer.write(ClaimDeliveries(now, limit));
}
Task<Result<std::optional<Time>>> PostgresLedger::next_due() {
    return impl_->ask_one(find_next_due(), [](const Rows& rows) {
        return rows.first([](const Row& row) -> Result<Time> { return row.time(0); });
    });
}
Task<Result<>> PostgresLedger::delivered(notify::Delivery delivery, Time now) {
    return impl_->writer.write(EndDelivery(delivery, true, now, {}));
}
Task<Result<>> PostgresLedger::retry_at(
    notify::Delivery delivery, Time next_attempt_at, std::string error
) {
    return impl_->writer.write(PostponeDelivery(delivery, next_attempt_at, error, true));
}
Task<Result<>> PostgresLedger::put_aside(
    notify::Delivery delivery, Time next_attempt_at, std::string why
) {
    return impl_->writer.write(PostponeDelivery(delivery, next_attempt_at, why, false));
}
Task<Result<>> PostgresLedger::give_up(notify::Delivery delivery, Time now, std::string error) {
    return impl_->writer.write(EndDelivery(delivery, false, now, error));
}
Task<Result<notify::Outbox::Counts>> PostgresLedger::counts() {
    return impl_->ask_one(
        count_deliveries(),
        [](const Rows& rows) -> Result<notify::Outbox::Counts> {
            return read_delivery_counts(rows);
        }
    );
}

std::unique_ptr<jobs::Ledger> PostgresLedger::under(jobs::Term term) {
    return std::make_unique<Led>(*this, std::move(term));
}
Task<Result<jobs::ArrivalPage>> PostgresLedger::arrivals(
    std::string domain, jobs::ArrivalCursor after, int limit
) {
    return impl_->ask(
        find_arrivals(domain, after, limit),
        [impl = impl_.get(), after, limit](const std::vector<Rows>& answers) {
            auto page = read_arrivals(answers, after, limit);
            if (page) {
                impl->open(*page);
            }
            return page;
        }
    );
}
Task<Result<>> PostgresLedger::wish(jobs::Wish wish) {
    return impl_->writer.write(AddWish(std::move(wish)));
}
Task<Result<std::vector<jobs::Wish>>> PostgresLedger::wishes(std::string domain, int limit) {
    return impl_->ask_one(find_wishes(domain, limit), [](const Rows& rows) {
        return rows.all(read_wish);
    });
}
Task<Result<>> PostgresLedger::drop_wishes(std::vector<std::int64_t> ids) {
    return impl_->writer.write(DropWishes(std::move(ids)));
}
Task<Result<std::vector<JobId>>> PostgresLedger::advanced(std::vector<jobs::Heard> heard) {
    return impl_->ask_one(find_advanced(heard), [](const Rows& rows) -> Result<std::vector<JobId>> {
        return read_advanced(rows);
    });
}

Task<Result<std::optional<cluster::Taken>>> PostgresLedger::take(std::string domain, NodeId node) {
    return impl_->writer.write(TakeLease(std::move(domain), node));
}
Task<Result<>> PostgresLedger::renew(jobs::Term term, std::uint64_t queued) {
    return impl_->writer.write(RenewLease(std::move(term), queued));
}
Task<Result<>> PostgresLedger::resign(jobs::Term term) {
    return impl_->writer.write(ResignLease(std::move(term)));
}
Task<Result<std::vector<cluster::Lease>>> PostgresLedger::all() {
    return impl_->ask_one(
        find_leases(),
        [](const Rows& rows) -> Result<std::vector<cluster::Lease>> { return read_leases(rows); }
    );
}
void PostgresLedger::on_session_lost(std::function<void()> call) {
    impl_->writer.on_session_lost(std::move(call));
}

}  // namespace comfyd::ledger
