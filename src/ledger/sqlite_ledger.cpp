#include "ledger/sqlite_ledger.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <system_error>
#include <utility>

#include "base/pool.hpp"
#include "ledger/sqlite/asset_store.hpp"
#include "ledger/sqlite/blob_records.hpp"
#include "ledger/sqlite/bulk_store.hpp"
#include "ledger/sqlite/delivery_views.hpp"
#include "ledger/sqlite/endpoint_store.hpp"
#include "ledger/sqlite/identity_store.hpp"
#include "ledger/sqlite/instance_store.hpp"
#include "ledger/sqlite/job_queries.hpp"
#include "ledger/sqlite/job_writes.hpp"
#include "ledger/sqlite/lock_file.hpp"
#include "ledger/sqlite/model_store.hpp"
#include "ledger/sqlite/notes.hpp"
#include "ledger/sqlite/outbox_store.hpp"
#include "ledger/sqlite/purge.hpp"
#include "ledger/sqlite/readers.hpp"
#include "ledger/sqlite/rollups.hpp"
#include "ledger/sqlite/session_store.hpp"
#include "ledger/sqlite/workflow_store.hpp"
#include "ledger/sqlite/writer.hpp"

namespace comfyd::ledger {

using namespace sqlite;

namespace {

Result<> make_folder(const std::filesystem::path& folder) {
    if (folder.empty()) {
        return {};
    }
    std::error_code error;
    if (std::filesystem::create_directories(folder, error)) {
        std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    }
    if (error) {
        return fail(
            Code::storage_unavailable,
            "cannot make the folder " + folder.string() + ": " + error.message() +
                "; make it yourself, or choose another data folder"
        );
    }
    return {};
}

// The file holds webhook secrets. SQLite gives its log the same mode.
Result<> make_private_file(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return fail(
            Code::storage_unavailable,
            "cannot open the database " + path.string() + " for writing: " + std::strerror(errno) +
                "; make the file and its folder writable for this user"
        );
    }
    [[maybe_unused]] const int changed = ::fchmod(descriptor, 0600);
    ::close(descriptor);
    return {};
}

}  // namespace

class SqliteLedger::Impl {
public:
    Impl(const Options& options, Clock& of_now, std::unique_ptr<LockFile> lock)
        : lock_(std::move(lock)),
          clock(of_now),
          routing(options.routing),
          writer(options, of_now),
          readers(options.path, options.busy_timeout),
          reads_apart_(options.reads_apart) {}

    template <class Read>
    Task<std::invoke_result_t<Read&, Database&>> read(Read read) {
        if (!reads_apart_ || !reads_apart_->of.running_in_this_thread()) {
            co_return readers.with(std::move(read));
        }
        auto outcome = co_await reads_apart_->pool->run([this, read = std::move(read)]() mutable {
            return read_guarded(read);
        });
        co_return outcome;
    }

private:
    // What it throws (no memory, above all) must not end a thread of the pool.
    template <class Read>
    std::invoke_result_t<Read&, Database&> read_guarded(Read& read) {
        try {
            return readers.with(std::ref(read));
        } catch (const std::exception& exception) {
            return fail(
                Code::storage_unavailable,
                std::string("cannot read the database: ") + exception.what()
            );
        }
    }

    std::unique_ptr<LockFile> lock_;  // first, because it is let go of last

public:
    Clock& clock;
    const notify::Routing* const routing;
    PurgeCursor purge_cursor;  // used by the writer's thread
    Writer writer;
    Readers readers;

private:
    const std::optional<ReadsApart> reads_apart_;
};

SqliteLedger::SqliteLedger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SqliteLedger::~SqliteLedger() {
    stop();
}

Result<std::unique_ptr<SqliteLedger>> SqliteLedger::open(Options options, Clock& clock) {
    if (auto made = make_folder(options.path.parent_path()); !made) {
        return fail(std::move(made.error()));
    }
    auto lock = LockFile::acquire(options.path.string() + ".lock");
    if (!lock) {
        return fail(std::move(lock.error()));
    }
    if (auto made = make_private_file(options.path); !made) {
        return fail(std::move(made.error()));
    }
    auto impl = std::make_unique<Impl>(options, clock, std::move(*lock));
    if (auto opened = impl->writer.open(); !opened) {
        return fail(std::move(opened.error()));
    }
    if (auto opened = impl->readers.open(); !opened) {
        return fail(std::move(opened.error()));
    }
    return std::unique_ptr<SqliteLedger>(new SqliteLedger(std::move(impl)));
}

void SqliteLedger::stop() {
    // The writer last, because the last connection to close empties the log.
    impl_->readers.close();
    impl_->writer.stop();
}

StorageStats SqliteLedger::storage_stats() const {
    return impl_->writer.stats();
}
std::optional<std::uint64_t> SqliteLedger::changes() const {
    return impl_->writer.changes();
}
Result<> SqliteLedger::healthy() const {
    return impl_->writer.healthy();
}

Task<Result<jobs::Accepted>> SqliteLedger::accept(jobs::NewJob job) {
    return impl_->writer.write(AcceptJob(std::move(job), impl_->routing), true);
}

Task<Result<jobs::Accepted>> SqliteLedger::find_key(std::string tenant, std::string key) {
    return impl_->read(
        [this, tenant = std::move(tenant), key = std::move(key)](Database& db
        ) -> Result<jobs::Accepted> {
            auto found = find_by_key(db, tenant, key, impl_->clock.now());
            if (!found) {
                return fail(std::move(found.error()));
            }
            return *found ? std::move(**found) : jobs::Accepted{};
        }
    );
}

Task<Result<std::optional<jobs::Job>>> SqliteLedger::find_reusable(
    std::string tenant, std::string reuse_key
) {
    return impl_->read([tenant = std::move(tenant), reuse_key = std::move(reuse_key)](Database& db
                       ) { return find_reusable_job(db, tenant, reuse_key); });
}

Task<Result<>> SqliteLedger::commit(jobs::Change change) {
    auto told = told_to(impl_->routing, change.job, change.event);
    return impl_->writer.write(CommitChange(std::move(change), std::move(told)), false);
}

Task<Result<std::optional<jobs::Job>>> SqliteLedger::find(JobId id) {
    return impl_->read([id](Database& db) { return find_job(db, id); });
}

Task<Result<std::optional<jobs::Spec>>> SqliteLedger::find_spec(JobId id) {
    return impl_->read([id](Database& db) { return sqlite::find_spec(db, id); });
}

Task<Result<jobs::Page>> SqliteLedger::list(jobs::ListQuery query) {
    return impl_->read([query = std::move(query)](Database& db) { return list_jobs(db, query); });
}

Task<Result<std::vector<jobs::Event>>> SqliteLedger::events(JobId id, std::uint64_t after) {
    return impl_->read([id, after](Database& db) { return find_events(db, id, after); });
}

Task<Result<jobs::WebhookStatus>> SqliteLedger::webhook_status(JobId id) {
    return impl_->read([id](Database& db) { return find_webhook_status(db, id); });
}

Task<Result<std::optional<jobs::Stamp>>> SqliteLedger::stamp(JobId id) {
    return impl_->read([id](Database& db) { return find_stamp(db, id); });
}

Task<Result<jobs::StateCounts>> SqliteLedger::counts(std::optional<std::string> tenant) {
    return impl_->read([tenant = std::move(tenant)](Database& db) { return count_jobs(db, tenant); }
    );
}

// By days, the latest first, so that others get their turn on this thread between them.
Task<Result<jobs::Stats>> SqliteLedger::stats(jobs::StatsQuery query) {
    constexpr Millis kSlice = std::chrono::hours(24);
    constexpr Millis kHour = std::chrono::hours(1);
    const Time first = jobs::hour_of(std::max(query.from, query.to - jobs::kStatsLife));
    jobs::StatsSum sum(query.group_by);
    for (Time last = jobs::hour_of(query.to); last >= first; last -= kSlice) {
        const Time from = std::max(first, last - kSlice + kHour);
        // Both live in this frame until it has been read.
        auto read = co_await impl_->read([&query, &sum, from, last](Database& db) {
            return read_rollups(db, query.tenant, from, last, sum);
        });
        if (!read) {
            co_return fail(std::move(read.error()));
        }
        co_await sleep_for(Millis(0));
    }
    co_return sum.take();
}

Task<Result<std::vector<jobs::Unfinished>>> SqliteLedger::unfinished(
    std::optional<JobId> after, int limit
) {
    return impl_->read([after, limit](Database& db) { return find_unfinished(db, after, limit); });
}

Task<Result<jobs::Purged>> SqliteLedger::purge(Time before, int limit) {
    return impl_->writer.write_behind(PurgeJobs{before, limit, impl_->purge_cursor});
}

Task<Result<>> SqliteLedger::discard(JobId id) {
    return impl_->writer.write(DiscardJob{id}, false);
}

Task<Result<jobs::WorkflowSaved>> SqliteLedger::save_workflow(jobs::WorkflowSave save) {
    return impl_->writer.write(SaveWorkflow{std::move(save)}, false);
}

Task<Result<std::optional<jobs::NamedWorkflow>>> SqliteLedger::find_workflow(jobs::WorkflowName of
) {
    return impl_->read([of = std::move(of)](Database& db) { return sqlite::find_workflow(db, of); }
    );
}

Task<Result<std::optional<jobs::WorkflowVersion>>> SqliteLedger::find_workflow_version(
    jobs::WorkflowName of, int version
) {
    return impl_->read([of = std::move(of), version](Database& db) {
        return sqlite::find_workflow_version(db, of, version);
    });
}

Task<Result<jobs::WorkflowPage>> SqliteLedger::list_workflows(
    std::string tenant, std::string after, int limit
) {
    return impl_->read([tenant = std::move(tenant), after = std::move(after), limit](Database& db) {
        return sqlite::list_workflows(db, tenant, after, limit);
    });
}

Task<Result<jobs::WorkflowVersionPage>> SqliteLedger::list_workflow_versions(
    jobs::WorkflowName of, std::optional<int> before, int limit
) {
    return impl_->read([of = std::move(of), before, limit](Database& db) {
        return sqlite::list_workflow_versions(db, of, before, limit);
    });
}

Task<Result<jobs::NamedWorkflow>> SqliteLedger::set_workflow_label(
    jobs::WorkflowName of,
    std::string label,
    std::optional<int> version,
    std::optional<std::string> expected_tag
) {
    return impl_->writer.write(
        SetWorkflowLabel{std::move(of), std::move(label), version, std::move(expected_tag)}, false
    );
}

Task<Result<jobs::NamedWorkflow>> SqliteLedger::remove_workflow_version(
    jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
) {
    return impl_->writer.write(
        RemoveWorkflowVersion{std::move(of), version, std::move(expected_tag)}, false
    );
}

Task<Result<>> SqliteLedger::remove_workflow(
    jobs::WorkflowName of, std::optional<std::string> expected_tag
) {
    return impl_->writer.write(RemoveWorkflow{std::move(of), std::move(expected_tag)}, false);
}

Task<Result<jobs::BulkAdded>> SqliteLedger::add_bulk(jobs::Bulk bulk, std::string plan) {
    return impl_->writer.write(AddBulk{std::move(bulk), std::move(plan)}, false);
}

Task<Result<>> SqliteLedger::commit_bulk(jobs::BulkChange change) {
    return impl_->writer.write(CommitBulk{std::move(change)}, false);
}

Task<Result<>> SqliteLedger::remove_bulk(jobs::BulkId id) {
    return impl_->writer.write(RemoveBulk{id}, false);
}

Task<Result<std::optional<jobs::Bulk>>> SqliteLedger::find_bulk(jobs::BulkId id) {
    return impl_->read([id](Database& db) { return sqlite::find_bulk(db, id); });
}

Task<Result<std::optional<std::string>>> SqliteLedger::find_bulk_plan(jobs::BulkId id) {
    return impl_->read([id](Database& db) { return sqlite::find_bulk_plan(db, id); });
}

Task<Result<jobs::BulkPage>> SqliteLedger::list_bulks(
    std::string tenant, std::optional<jobs::BulkId> before, int limit
) {
    return impl_->read([tenant = std::move(tenant), before, limit](Database& db) {
        return sqlite::list_bulks(db, tenant, before, limit);
    });
}

Task<Result<std::vector<jobs::BulkItem>>> SqliteLedger::bulk_items(jobs::BulkItemQuery query) {
    return impl_->read([query](Database& db) { return find_bulk_items(db, query); });
}

Task<Result<std::vector<jobs::Bulk>>> SqliteLedger::open_bulks(int limit) {
    return impl_->read([limit](Database& db) { return find_open_bulks(db, limit); });
}

Task<Result<std::vector<jobs::BulkId>>> SqliteLedger::ended_bulks(Time before, int limit) {
    return impl_->read([before, limit](Database& db) { return find_ended_bulks(db, before, limit); }
    );
}

Task<Result<>> SqliteLedger::write_note(std::string name, std::string text) {
    return impl_->writer.write(WriteNote{std::move(name), std::move(text)}, false);
}

Task<Result<std::optional<std::string>>> SqliteLedger::read_note(std::string name) {
    return impl_->read([name = std::move(name)](Database& db) { return find_note(db, name); });
}

Task<Result<>> SqliteLedger::add(assets::Asset asset) {
    return impl_->writer.write(AddAsset{std::move(asset)}, false);
}

Task<Result<std::optional<assets::Asset>>> SqliteLedger::find(AssetId id) {
    return impl_->read([id](Database& db) { return find_asset(db, id); });
}

Task<Result<std::optional<assets::Asset>>> SqliteLedger::find_by_hash(
    std::string tenant, std::string hash
) {
    return impl_->read([tenant = std::move(tenant), hash = std::move(hash)](Database& db) {
        return find_asset_by_hash(db, tenant, hash);
    });
}

Task<Result<bool>> SqliteLedger::remove(AssetId id) {
    return impl_->writer.write(RemoveAsset{id}, false);
}

Task<Result<std::optional<std::string>>> SqliteLedger::kept_bytes(std::string hash) {
    return impl_->read([hash = std::move(hash)](Database& db) { return find_kept_bytes(db, hash); }
    );
}

Task<Result<>> SqliteLedger::set_crc32(AssetId id, std::uint32_t crc32) {
    return impl_->writer.write(SetCrc32{id, crc32}, false);
}

Task<Result<std::vector<assets::Asset>>> SqliteLedger::expired(
    Time now, std::optional<assets::Asset> after, int limit
) {
    return impl_->read([now, after = std::move(after), limit](Database& db) {
        return find_expired_assets(db, now, after, limit);
    });
}

Task<Result<std::vector<assets::Asset>>> SqliteLedger::moving(
    Time now, std::optional<assets::Asset> after, int limit
) {
    return impl_->read([now, after = std::move(after), limit](Database& db) {
        return find_moving_assets(db, now, after, limit);
    });
}

Task<Result<>> SqliteLedger::moved(AssetId id, std::optional<Time> moves_at) {
    return impl_->writer.write(SetMoves{id, moves_at}, false);
}

Task<Result<std::vector<assets::Asset>>> SqliteLedger::sharing(
    std::string hash, std::string store, int limit
) {
    return impl_->read([hash = std::move(hash), store = std::move(store), limit](Database& db) {
        return find_sharing_assets(db, hash, store, limit);
    });
}

Task<Result<std::uint64_t>> SqliteLedger::stored_bytes(std::string tenant) {
    return impl_->read([tenant = std::move(tenant)](Database& db) {
        return sum_asset_bytes(db, tenant);
    });
}

Task<Result<std::vector<assets::BlobRecord>>> SqliteLedger::blobs_of(std::string hash) {
    return impl_->read([hash = std::move(hash)](Database& db) { return find_blobs(db, hash); });
}

Task<Result<bool>> SqliteLedger::hold(std::string hash, std::string store, Time until) {
    return impl_->writer.write(HoldBlob{std::move(hash), std::move(store), until}, false);
}

Task<Result<int>> SqliteLedger::doom(Time now, Time goes_at, int limit) {
    return impl_->writer.write_behind(DoomBlobs{now, goes_at, limit});
}

Task<Result<int>> SqliteLedger::take_out(Time now, Time again, int limit) {
    return impl_->writer.write_behind(TakeOutBlobs{now, again, limit});
}

Task<Result<std::vector<assets::BlobRemoval>>> SqliteLedger::removals(Time now, int limit) {
    return impl_->read([now, limit](Database& db) { return find_removals(db, now, limit); });
}

Task<Result<>> SqliteLedger::removed(assets::BlobRemoval removal) {
    return impl_->writer.write_behind(EndRemoval{std::move(removal)});
}

Task<Result<>> SqliteLedger::remove_later(assets::BlobRemoval removal, Time at, std::string error) {
    return impl_->writer.write_behind(PostponeRemoval{std::move(removal), at, std::move(error)});
}

Task<Result<int>> SqliteLedger::enter_leftovers(
    std::vector<assets::BlobRecord> found, Time goes_at
) {
    return impl_->writer.write_behind(EnterLeftovers{std::move(found), goes_at});
}

Task<Result<std::vector<SqliteLedger::Upload>>> SqliteLedger::uploads(Time now, int limit) {
    return impl_->read([now, limit](Database& db) { return find_uploads(db, now, limit); });
}

Task<Result<>> SqliteLedger::begin_upload(assets::BlobRecord record, Time at) {
    return impl_->writer.write(BeginUpload{std::move(record), at}, false);
}

Task<Result<>> SqliteLedger::uploaded(assets::BlobRecord record, std::string instead_of, Time now) {
    return impl_->writer.write(EndUpload{std::move(record), std::move(instead_of), now}, false);
}

Task<Result<>> SqliteLedger::upload_later(assets::BlobRecord record, Time at, std::string error) {
    return impl_->writer.write(PostponeUpload{std::move(record), at, std::move(error)}, false);
}

Task<Result<>> SqliteLedger::note_upload(assets::BlobRecord record, std::string note) {
    return impl_->writer.write(NoteUpload{std::move(record), std::move(note)}, false);
}

Task<Result<>> SqliteLedger::give_up(assets::BlobRecord record, Time goes_at) {
    return impl_->writer.write(GiveUpBlob{std::move(record), goes_at}, false);
}

Task<Result<>> SqliteLedger::set_storage_class(assets::BlobRecord record) {
    return impl_->writer.write(SetStorageClass{std::move(record)}, false);
}

Task<Result<std::vector<assets::BlobRecord>>> SqliteLedger::blobs_in(
    std::string store, std::optional<assets::BlobRecord> after, int limit
) {
    return impl_->read([store = std::move(store), after = std::move(after), limit](Database& db) {
        return find_blobs_in(db, store, after, limit);
    });
}

Task<Result<SqliteLedger::Waiting>> SqliteLedger::waiting() {
    return impl_->read([](Database& db) { return count_waiting(db); });
}

Task<Result<std::vector<notify::Delivery>>> SqliteLedger::due(Time now, int limit) {
    return impl_->read([now, limit](Database& db) { return find_due(db, now, limit); });
}

Task<Result<std::optional<Time>>> SqliteLedger::next_due() {
    return impl_->read([](Database& db) { return find_next_due(db); });
}

Task<Result<>> SqliteLedger::delivered(notify::Delivery delivery, Time now) {
    return impl_->writer.write(EndDelivery{std::move(delivery), true, now}, false);
}

Task<Result<>> SqliteLedger::retry_at(
    notify::Delivery delivery, Time next_attempt_at, std::string error
) {
    return impl_->writer.write(
        PostponeDelivery{std::move(delivery), next_attempt_at, std::move(error)}, false
    );
}

Task<Result<>> SqliteLedger::put_aside(
    notify::Delivery delivery, Time next_attempt_at, std::string why
) {
    return impl_->writer.write(
        PostponeDelivery{std::move(delivery), next_attempt_at, std::move(why), false}, false
    );
}

Task<Result<>> SqliteLedger::give_up(notify::Delivery delivery, Time now, std::string error) {
    return impl_->writer.write(
        EndDelivery{std::move(delivery), false, now, std::move(error)}, false
    );
}

Task<Result<int>> SqliteLedger::give_up_waiting(
    std::string endpoint, Time now, std::string why, int limit
) {
    return impl_->writer.write(
        GiveUpWaiting{std::move(endpoint), now, std::move(why), limit}, false
    );
}

Task<Result<>> SqliteLedger::hasten(Time now, Millis by) {
    return impl_->writer.write(HastenDeliveries{now, by}, false);
}

Task<Result<notify::DeliveryPage>> SqliteLedger::list_deliveries(notify::DeliveryQuery query) {
    return impl_->read([query = std::move(query)](Database& db) {
        return sqlite::list_deliveries(db, query);
    });
}

Task<Result<std::optional<notify::DeliveryView>>> SqliteLedger::find_delivery(
    notify::DeliveryKey key
) {
    return impl_->read([key = std::move(key)](Database& db) {
        return sqlite::find_delivery(db, key);
    });
}

Task<Result<int>> SqliteLedger::count_dead(notify::DeadFilter filter, int limit) {
    return impl_->read([filter = std::move(filter), limit](Database& db) {
        return sqlite::count_dead(db, filter, limit);
    });
}

Task<Result<int>> SqliteLedger::replay_dead(notify::DeadFilter filter, Time now, int limit) {
    return impl_->writer.write(ReplayDead{std::move(filter), now, limit}, false);
}

Task<Result<int>> SqliteLedger::purge_dead(notify::DeadFilter filter, int limit) {
    return impl_->writer.write(PurgeDead{std::move(filter), limit}, false);
}

Task<Result<>> SqliteLedger::save_endpoint(notify::Endpoint endpoint) {
    return impl_->writer.write(SaveEndpoint{std::move(endpoint)}, false);
}

Task<Result<bool>> SqliteLedger::remove_endpoint(notify::EndpointId id) {
    return impl_->writer.write(RemoveEndpoint{id}, false);
}

Task<Result<notify::AllEndpoints>> SqliteLedger::all_endpoints() {
    return impl_->read([](Database& db) { return find_all_endpoints(db); });
}

Task<Result<std::uint64_t>> SqliteLedger::endpoint_changes() {
    return impl_->read([](Database& db) { return count_endpoint_changes(db); });
}

Task<Result<>> SqliteLedger::save_identity(auth::IdentityRecord record) {
    return impl_->writer.write(SaveIdentity{std::move(record)}, false);
}

Task<Result<bool>> SqliteLedger::remove_identity(auth::IdentityKind kind, std::string id) {
    return impl_->writer.write(RemoveIdentity{kind, std::move(id)}, false);
}

Task<Result<auth::AllIdentities>> SqliteLedger::all_identities() {
    return impl_->read([](Database& db) { return find_all_identities(db); });
}

Task<Result<std::uint64_t>> SqliteLedger::identity_changes() {
    return impl_->read([](Database& db) { return count_identity_changes(db); });
}

Task<Result<>> SqliteLedger::note_key_uses(auth::KeyUses uses) {
    return impl_->writer.write_behind(NoteKeyUses{std::move(uses)});
}

Task<Result<>> SqliteLedger::save_model(models::ModelRecord record) {
    return impl_->writer.write(SaveModel{std::move(record)}, false);
}

Task<Result<models::AllModels>> SqliteLedger::all_models() {
    return impl_->read([](Database& db) { return find_all_models(db); });
}

Task<Result<std::uint64_t>> SqliteLedger::model_changes() {
    return impl_->read([](Database& db) { return count_model_changes(db); });
}

Task<Result<>> SqliteLedger::save_session(auth::SessionRecord record, int kept_max) {
    return impl_->writer.write(SaveSession{std::move(record), kept_max}, false);
}

Task<Result<std::optional<auth::SessionRecord>>> SqliteLedger::find_session(
    auth::SessionKind kind, std::string id
) {
    return impl_->read([kind, id = std::move(id)](Database& db) {
        return sqlite::find_session(db, kind, id);
    });
}

Task<Result<std::optional<auth::SessionRecord>>> SqliteLedger::take_session(
    auth::SessionKind kind, std::string id
) {
    return impl_->writer.write(TakeSession{kind, std::move(id)}, false);
}

Task<Result<>> SqliteLedger::note_session_use(std::string id, Time used_at, Time ends_at) {
    return impl_->writer.write_behind(NoteSessionUse{std::move(id), used_at, ends_at});
}

Task<Result<std::vector<auth::SessionRecord>>> SqliteLedger::list_sessions(auth::SessionQuery query
) {
    return impl_->read([query = std::move(query)](Database& db) {
        return sqlite::list_sessions(db, query);
    });
}

Task<Result<>> SqliteLedger::
    save_instance(fleet::Instance instance, std::optional<fleet::FleetEvent> event, std::optional<jobs::Term>) {
    return impl_->writer.write(SaveInstance{std::move(instance), std::move(event)}, false);
}

Task<Result<std::vector<fleet::Instance>>> SqliteLedger::open_instances(std::string fleet) {
    return impl_->read([fleet = std::move(fleet)](Database& db) {
        return find_open_instances(db, fleet);
    });
}

Task<Result<std::vector<fleet::Instance>>> SqliteLedger::ended_instances(
    std::string fleet, int limit
) {
    return impl_->read([fleet = std::move(fleet), limit](Database& db) {
        return find_ended_instances(db, fleet, limit);
    });
}

Task<Result<>> SqliteLedger::save_pool(
    fleet::PoolRecord record, std::optional<fleet::FleetEvent> event
) {
    return impl_->writer.write(SavePool{std::move(record), std::move(event)}, false);
}

Task<Result<std::vector<fleet::PoolRecord>>> SqliteLedger::pool_records(std::string fleet) {
    return impl_->read([fleet = std::move(fleet)](Database& db) {
        return find_pool_records(db, fleet);
    });
}

Task<Result<>> SqliteLedger::note_fleet_event(fleet::FleetEvent event) {
    return impl_->writer.write(NoteFleetEvent{std::move(event)}, false);
}

Task<Result<std::vector<fleet::FleetEvent>>> SqliteLedger::fleet_events(fleet::FleetEventQuery query
) {
    return impl_->read([query = std::move(query)](Database& db) {
        return find_fleet_events(db, query);
    });
}

Task<Result<std::vector<fleet::FleetEvent>>> SqliteLedger::fleet_events_after(
    std::string fleet, fleet::FleetEventPlace after, int limit
) {
    return impl_->read([fleet = std::move(fleet), after, limit](Database& db) {
        return find_fleet_events_after(db, fleet, after, limit);
    });
}

Task<Result<notify::Outbox::Counts>> SqliteLedger::counts() {
    return impl_->read([](Database& db) { return count_deliveries(db); });
}

}  // namespace comfyd::ledger
