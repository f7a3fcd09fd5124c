// Storage in one SQLite file. Writes are grouped: a thread of its own commits whatever has queued
// up with one fsync (synchronous=FULL), then resumes all who waited, each on its own executor.
// Reads run at once on the calling thread, but for that of reads_apart, and see every write that
// returned before them. After a failure of storage nothing is half-written, reads go on, and the
// next write is tried again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ledger/storage.hpp"

namespace comfyd::ledger {

class SqliteLedger final : public Storage {
public:
    struct Options {
        std::filesystem::path
            path;  // of the database file; its folder is made when absent (mode 0700)
        std::uint64_t database_bytes_max = 0;  // 0: as large as the disk; else Code::storage_full
        std::uint64_t wal_bytes_soft = 16ULL * 1024 * 1024;  // checkpoint above it, beside commits
        std::uint64_t wal_bytes_max = 128ULL * 1024 * 1024;  // commits wait for one above it
        std::size_t queue_bytes_max =
            64ULL * 1024 * 1024;       // of writes that wait; new jobs above it: Code::queue_full
        Millis probe_interval{1'000};  // between attempts to write after a failure
        Millis busy_timeout{5'000};    // for other programs that hold the file, such as a backup
        std::optional<ReadsApart> reads_apart{};
        const notify::Routing* routing = nullptr;  // as in OpenOptions
    };

    // Makes, migrates or recovers the database. Code::storage_unavailable (also when another
    // process uses the folder), Code::storage_full, Code::schema_too_new. `clock` outlives the
    // ledger.
    static Result<std::unique_ptr<SqliteLedger>> open(Options options, Clock& clock);
    // Finishes what is queued, checkpoints and closes.
    ~SqliteLedger() override;

    void stop() override;
    // While the latest write failed, one is tried every probe_interval.
    Result<> healthy() const override;
    StorageStats storage_stats() const override;
    std::optional<std::uint64_t> changes() const override;

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
    // A page may end early, with a cursor, when the filter matches very little of what there is.
    Task<Result<jobs::Page>> list(jobs::ListQuery query) override;
    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override;
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId id) override;
    Task<Result<std::optional<jobs::Stamp>>> stamp(JobId id) override;
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string> tenant) override;
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery query) override;
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId> after, int limit)
        override;
    Task<Result<jobs::Purged>> purge(Time before, int limit) override;
    Task<Result<>> discard(JobId id) override;

    Task<Result<jobs::WorkflowSaved>> save_workflow(jobs::WorkflowSave save) override;
    Task<Result<std::optional<jobs::NamedWorkflow>>> find_workflow(jobs::WorkflowName of) override;
    Task<Result<std::optional<jobs::WorkflowVersion>>> find_workflow_version(
        jobs::WorkflowName of, int version
    ) override;
    Task<Result<jobs::WorkflowPage>> list_workflows(
        std::string tenant, std::string after, int limit
    ) override;
    Task<Result<jobs::WorkflowVersionPage>> list_workflow_versions(
        jobs::WorkflowName of, std::optional<int> before, int limit
    ) override;
    Task<Result<jobs::NamedWorkflow>> set_workflow_label(
        jobs::WorkflowName of,
        std::string label,
        std::optional<int> version,
        std::optional<std::string> expected_tag
    ) override;
    Task<Result<jobs::NamedWorkflow>> remove_workflow_version(
        jobs::WorkflowName of, int version, std::optional<std::string> expected_tag
    ) override;
    Task<Result<>> remove_workflow(jobs::WorkflowName of, std::optional<std::string> expected_tag)
        override;

    Task<Result<jobs::BulkAdded>> add_bulk(jobs::Bulk bulk, std::string plan) override;
    Task<Result<>> commit_bulk(jobs::BulkChange change) override;
    Task<Result<>> remove_bulk(jobs::BulkId id) override;
    Task<Result<std::optional<jobs::Bulk>>> find_bulk(jobs::BulkId id) override;
    Task<Result<std::optional<std::string>>> find_bulk_plan(jobs::BulkId id) override;
    Task<Result<jobs::BulkPage>> list_bulks(
        std::string tenant, std::optional<jobs::BulkId> before, int limit
    ) override;
    Task<Result<std::vector<jobs::BulkItem>>> bulk_items(jobs::BulkItemQuery query) override;
    Task<Result<std::vector<jobs::Bulk>>> open_bulks(int limit) override;
    Task<Result<std::vector<jobs::BulkId>>> ended_bulks(Time before, int limit) override;

    Task<Result<>> write_note(std::string name, std::string text) override;
    Task<Result<std::optional<std::string>>> read_note(std::string name) override;

    Task<Result<>> add(assets::Asset asset) override;
    Task<Result<std::optional<assets::Asset>>> find(AssetId id) override;
    Task<Result<std::optional<assets::Asset>>> find_by_hash(std::string tenant, std::string hash)
        override;
    Task<Result<bool>> remove(AssetId id) override;
    Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) override;
    Task<Result<>> set_crc32(AssetId id, std::uint32_t crc32) override;
    Task<Result<std::vector<assets::Asset>>> expired(
        Time now, std::optional<assets::Asset> after, int limit
    ) override;
    Task<Result<std::vector<assets::Asset>>> moving(
        Time now, std::optional<assets::Asset> after, int limit
    ) override;
    Task<Result<>> moved(AssetId id, std::optional<Time> moves_at) override;
    Task<Result<std::vector<assets::Asset>>> sharing(std::string hash, std::string store, int limit)
        override;
    Task<Result<std::uint64_t>> stored_bytes(std::string tenant) override;

    Task<Result<std::vector<assets::BlobRecord>>> blobs_of(std::string hash) override;
    Task<Result<bool>> hold(std::string hash, std::string store, Time until) override;
    Task<Result<int>> doom(Time now, Time goes_at, int limit) override;
    Task<Result<int>> take_out(Time now, Time again, int limit) override;
    Task<Result<std::vector<assets::BlobRemoval>>> removals(Time now, int limit) override;
    Task<Result<>> removed(assets::BlobRemoval removal) override;
    Task<Result<>> remove_later(assets::BlobRemoval removal, Time at, std::string error) override;
    Task<Result<int>> enter_leftovers(std::vector<assets::BlobRecord> found, Time goes_at) override;
    Task<Result<std::vector<Upload>>> uploads(Time now, int limit) override;
    Task<Result<>> begin_upload(assets::BlobRecord record, Time at) override;
    Task<Result<>> uploaded(assets::BlobRecord record, std::string instead_of, Time now) override;
    Task<Result<>> upload_later(assets::BlobRecord record, Time at, std::string error) override;
    Task<Result<>> note_upload(assets::BlobRecord record, std::string note) override;
    Task<Result<>> give_up(assets::BlobRecord record, Time goes_at) override;
    Task<Result<>> set_storage_class(assets::BlobRecord record) override;
    Task<Result<std::vector<assets::BlobRecord>>> blobs_in(
        std::string store, std::optional<assets::BlobRecord> after, int limit
    ) override;
    Task<Result<Waiting>> waiting() override;

    Task<Result<std::vector<notify::Delivery>>> due(Time now, int limit) override;
    Task<Result<std::optional<Time>>> next_due() override;
    Task<Result<>> delivered(notify::Delivery delivery, Time now) override;
    Task<Result<>> retry_at(notify::Delivery delivery, Time next_attempt_at, std::string error)
        override;
    Task<Result<>> put_aside(notify::Delivery delivery, Time next_attempt_at, std::string why)
        override;
    Task<Result<>> give_up(notify::Delivery delivery, Time now, std::string error) override;
    Task<Result<int>> give_up_waiting(std::string endpoint, Time now, std::string why, int limit)
        override;
    Task<Result<>> hasten(Time now, Millis by) override;
    Task<Result<notify::Outbox::Counts>> counts() override;

    Task<Result<notify::DeliveryPage>> list_deliveries(notify::DeliveryQuery query) override;
    Task<Result<std::optional<notify::DeliveryView>>> find_delivery(notify::DeliveryKey key
    ) override;
    Task<Result<int>> count_dead(notify::DeadFilter filter, int limit) override;
    Task<Result<int>> replay_dead(notify::DeadFilter filter, Time now, int limit) override;
    Task<Result<int>> purge_dead(notify::DeadFilter filter, int limit) override;

    Task<Result<>> save_endpoint(notify::Endpoint endpoint) override;
    Task<Result<bool>> remove_endpoint(notify::EndpointId id) override;
    Task<Result<notify::AllEndpoints>> all_endpoints() override;
    Task<Result<std::uint64_t>> endpoint_changes() override;

    Task<Result<>> save_identity(auth::IdentityRecord record) override;
    Task<Result<bool>> remove_identity(auth::IdentityKind kind, std::string id) override;
    Task<Result<auth::AllIdentities>> all_identities() override;
    Task<Result<std::uint64_t>> identity_changes() override;
    Task<Result<>> note_key_uses(auth::KeyUses uses) override;

    Task<Result<>> save_model(models::ModelRecord record) override;
    Task<Result<models::AllModels>> all_models() override;
    Task<Result<std::uint64_t>> model_changes() override;

    Task<Result<>> save_session(auth::SessionRecord record, int kept_max) override;
    Task<Result<std::optional<auth::SessionRecord>>> find_session(
        auth::SessionKind kind, std::string id
    ) override;
    Task<Result<std::optional<auth::SessionRecord>>> take_session(
        auth::SessionKind kind, std::string id
    ) override;
    Task<Result<>> note_session_use(std::string id, Time used_at, Time ends_at) override;
    Task<Result<std::vector<auth::SessionRecord>>> list_sessions(auth::SessionQuery query) override;

    Task<Result<>> save_instance(
        fleet::Instance instance,
        std::optional<fleet::FleetEvent> event,
        std::optional<jobs::Term> under
    ) override;
    Task<Result<std::vector<fleet::Instance>>> open_instances(std::string fleet) override;
    Task<Result<std::vector<fleet::Instance>>> ended_instances(std::string fleet, int limit)
        override;
    Task<Result<>> save_pool(fleet::PoolRecord record, std::optional<fleet::FleetEvent> event)
        override;
    Task<Result<std::vector<fleet::PoolRecord>>> pool_records(std::string fleet) override;
    Task<Result<>> note_fleet_event(fleet::FleetEvent event) override;
    Task<Result<std::vector<fleet::FleetEvent>>> fleet_events(fleet::FleetEventQuery query
    ) override;
    Task<Result<std::vector<fleet::FleetEvent>>> fleet_events_after(
        std::string fleet, fleet::FleetEventPlace after, int limit
    ) override;

private:
    class Impl;
    explicit SqliteLedger(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::ledger
