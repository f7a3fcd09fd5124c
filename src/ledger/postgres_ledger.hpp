// Storage in a PostgreSQL database that any number of nodes share. Writes are grouped: whatever has
// queued up goes to the server in one pipeline and is one transaction, then all who waited are
// resumed, each on its own executor. Reads go over connections of their own and see every write
// that returned before them. A thread of its own ("ledger") owns all connections; nothing here
// waits on the calling thread but open() and stop().
//
// A server that is gone is looked for again until it is there: writes wait for it, for a while, and
// nothing is written twice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ledger/storage.hpp"

namespace comfyd::ledger {

class PostgresLedger final : public Storage,
                             public jobs::SharedLedger,
                             public cluster::Leases,
                             public cluster::Roster {
public:
    struct Options {
        std::string url;  // postgres://…, as libpq reads it; what it leaves open is set for speed
        std::size_t queue_bytes_max =
            64ULL * 1024 * 1024;        // of writes that wait; new jobs above it: Code::queue_full
        Millis probe_interval{1'000};   // between attempts to connect while nobody writes
        Millis patience{10'000};        // of a write for a server that is gone
        Millis connect_timeout{5'000};  // of all hosts together
        Millis answer_timeout{20'000};  // then a connection counts as broken
        std::size_t readers = 4;        // connections
        // What secrets are sealed with; empty: those of jobs are not kept, others as they are.
        std::string secret{};
        const notify::Routing* routing = nullptr;  // as in OpenOptions
    };

    // Makes or migrates the tables, while other nodes wait. Code::config_invalid,
    // Code::storage_unavailable, Code::schema_too_new. `clock` outlives the ledger.
    static Result<std::unique_ptr<PostgresLedger>> open(Options options, Clock& clock);
    // Finishes what is queued and closes.
    ~PostgresLedger() override;

    void stop() override;
    Result<> healthy() const override;
    StorageStats storage_stats() const override;
    jobs::SharedLedger* shared() override { return this; }
    cluster::Leases* leases() override { return this; }
    cluster::Roster* nodes() override { return this; }

    Task<Result<jobs::Accepted>> accept(jobs::NewJob job) override;
    Task<Result<jobs::Accepted>> find_key(std::string tenant, std::string key) override;
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string tenant, std::string reuse_key)
        override;
    Task<Result<>> commit(jobs::Change change) override;
    Task<Result<std::optional<jobs::Job>>> find(JobId id) override;
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId id) override;
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

    std::unique_ptr<jobs::Ledger> under(jobs::Term term) override;
    Task<Result<jobs::ArrivalPage>> arrivals(
        std::string domain, jobs::ArrivalCursor after, int limit, jobs::IsKnown is_known = {}
    ) override;
    Task<Result<>> wish(jobs::Wish wish) override;
    Task<Result<std::vector<jobs::Wish>>> wishes(std::string domain, int limit) override;
    Task<Result<>> drop_wishes(std::vector<std::int64_t> ids) override;
    Task<Result<std::vector<JobId>>> advanced(std::vector<jobs::Heard> heard) override;

    Task<Result<std::optional<cluster::Taken>>> take(std::string domain, NodeId node) override;
    Task<Result<>> renew(jobs::Term term, std::uint64_t queued) override;
    Task<Result<>> resign(jobs::Term term) override;
    Task<Result<std::vector<cluster::Lease>>> all() override;
    void on_session_lost(std::function<void()> call) override;

    Task<Result<Time>> sign_in(NodeId node, json::object about) override;
    Task<Result<>> sign_out(NodeId node) override;
    Task<Result<std::vector<cluster::RosterEntry>>> roster() override;

private:
    class Impl;
    explicit PostgresLedger(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::ledger
