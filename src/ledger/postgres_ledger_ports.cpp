// The ports of a PostgresLedger beside jobs::Ledger.
#include <utility>

#include "ledger/postgres/asset_store.hpp"
#include "ledger/postgres/blob_records.hpp"
#include "ledger/postgres/bulk_store.hpp"
#include "ledger/postgres/delivery_views.hpp"
#include "ledger/postgres/endpoint_store.hpp"
#include "ledger/postgres/identity_store.hpp"
#include "ledger/postgres/instance_store.hpp"
#include "ledger/postgres/leases.hpp"
#include "ledger/postgres/led_ledger.hpp"
#include "ledger/postgres/ledger_impl.hpp"
#include "ledger/postgres/model_store.hpp"
#include "ledger/postgres/notes.hpp"
#include "ledger/postgres/outbox_store.hpp"
#include "ledger/postgres/roster.hpp"
#include "ledger/postgres/session_store.hpp"
#include "ledger/postgres/shared_store.hpp"
#include "ledger/postgres/workflow_store.hpp"
#include "ledger/postgres_ledger.hpp"

namespace comfyd::ledger {

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

Task<Result<jobs::BulkAdded>> PostgresLedger::add_bulk(jobs::Bulk bulk, std::string plan) {
    return impl_->writer.write(AddBulk(std::move(bulk), std::move(plan), impl_->secret_texts));
}
Task<Result<>> PostgresLedger::commit_bulk(jobs::BulkChange change) {
    return impl_->writer.write(CommitBulk(std::move(change), impl_->clock.now()));
}
Task<Result<>> PostgresLedger::remove_bulk(jobs::BulkId id) {
    return impl_->writer.write(RemoveBulk(id));
}
Task<Result<std::optional<jobs::Bulk>>> PostgresLedger::find_bulk(jobs::BulkId id) {
    return impl_->ask_one(postgres::find_bulk(id), [](const Rows& rows) {
        return rows.first(read_bulk);
    });
}
Task<Result<std::optional<std::string>>> PostgresLedger::find_bulk_plan(jobs::BulkId id) {
    return impl_->ask_one(postgres::find_bulk_plan(id), [this, id](const Rows& rows) {
        return rows.first([&](const Row& row) {
            return postgres::read_bulk_plan(row, id, impl_->secret_texts);
        });
    });
}
Task<Result<jobs::BulkPage>> PostgresLedger::list_bulks(
    std::string tenant, std::optional<jobs::BulkId> before, int limit
) {
    return impl_->ask_one(postgres::list_bulks(tenant, before, limit), [limit](const Rows& rows) {
        return read_bulk_page(rows, limit);
    });
}
Task<Result<std::vector<jobs::BulkItem>>> PostgresLedger::bulk_items(jobs::BulkItemQuery query) {
    return impl_->ask_one(find_bulk_items(query), [](const Rows& rows) {
        return rows.all(read_bulk_item);
    });
}
Task<Result<std::vector<jobs::Bulk>>> PostgresLedger::open_bulks(int limit) {
    return impl_->ask_one(find_open_bulks(limit), [](const Rows& rows) {
        return rows.all(read_bulk);
    });
}
Task<Result<std::vector<jobs::BulkId>>> PostgresLedger::ended_bulks(Time before, int limit) {
    return impl_->ask_one(find_ended_bulks(before, limit), [](const Rows& rows) {
        return rows.all([](const Row& row) -> Result<jobs::BulkId> {
            return jobs::BulkId{row.uuid(0)};
        });
    });
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
Task<Result<std::optional<std::string>>> PostgresLedger::kept_bytes(std::string hash) {
    return impl_->ask_one(find_kept_bytes(hash), [](const Rows& rows) {
        return rows.first([](const Row& row) -> Result<std::string> {
            return std::string(row.bytes(0));
        });
    });
}
Task<Result<>> PostgresLedger::set_crc32(AssetId id, std::uint32_t crc32) {
    return impl_->writer.write(PlainWrite({set_asset_crc32(id, crc32)}));
}
Task<Result<std::vector<assets::Asset>>> PostgresLedger::expired(
    Time now, std::optional<assets::Asset> after, int limit
) {
    return impl_->ask_one(find_expired_assets(now, after, limit), [](const Rows& rows) {
        return rows.all(read_asset);
    });
}
Task<Result<std::vector<assets::Asset>>> PostgresLedger::moving(
    Time now, std::optional<assets::Asset> after, int limit
) {
    return impl_->ask_one(find_moving_assets(now, after, limit), [](const Rows& rows) {
        return rows.all(read_asset);
    });
}
Task<Result<>> PostgresLedger::moved(AssetId id, std::optional<Time> moves_at) {
    return impl_->writer.write(PlainWrite({set_asset_moves(id, moves_at)}));
}
Task<Result<std::vector<assets::Asset>>> PostgresLedger::sharing(
    std::string hash, std::string store, int limit
) {
    return impl_->ask_one(find_sharing_assets(hash, store, limit), [](const Rows& rows) {
        return rows.all(read_asset);
    });
}

Task<Result<std::uint64_t>> PostgresLedger::stored_bytes(std::string tenant) {
    return impl_->ask_one(sum_asset_bytes(tenant), [](const Rows& rows) -> Result<std::uint64_t> {
        return rows.empty() ? 0 : static_cast<std::uint64_t>(rows[0].integer(0));
    });
}

Task<Result<std::vector<assets::BlobRecord>>> PostgresLedger::blobs_of(std::string hash) {
    return impl_->ask_one(find_blobs(hash), [](const Rows& rows) { return rows.all(read_blob); });
}
Task<Result<bool>> PostgresLedger::hold(std::string hash, std::string store, Time until) {
    return impl_->writer.write(HoldBlob(std::move(hash), std::move(store), until));
}
Task<Result<int>> PostgresLedger::doom(Time now, Time goes_at, int limit) {
    return impl_->writer.write(
        DoomBlobs(now, goes_at, limit), std::nullopt, Writer::Urgency::behind
    );
}
Task<Result<int>> PostgresLedger::take_out(Time now, Time again, int limit) {
    return impl_->writer.write(
        TakeOutBlobs(now, again, limit), std::nullopt, Writer::Urgency::behind
    );
}
Task<Result<std::vector<assets::BlobRemoval>>> PostgresLedger::removals(Time now, int limit) {
    return impl_->ask_one(find_removals(now, limit), [](const Rows& rows) {
        return rows.all(read_removal);
    });
}
Task<Result<>> PostgresLedger::removed(assets::BlobRemoval removal) {
    return impl_->writer.write(end_removal(removal), std::nullopt, Writer::Urgency::behind);
}
Task<Result<>> PostgresLedger::remove_later(
    assets::BlobRemoval removal, Time at, std::string error
) {
    return impl_->writer.write(
        postpone_removal(removal, at, error), std::nullopt, Writer::Urgency::behind
    );
}
Task<Result<int>> PostgresLedger::enter_leftovers(
    std::vector<assets::BlobRecord> found, Time goes_at
) {
    return impl_->writer.write(
        EnterLeftovers(std::move(found), impl_->clock.now(), goes_at),
        std::nullopt,
        Writer::Urgency::behind
    );
}
Task<Result<std::vector<PostgresLedger::Upload>>> PostgresLedger::uploads(Time now, int limit) {
    return impl_->ask_one(find_uploads(now, limit), [this](const Rows& rows) {
        return rows.all([this](const Row& row) { return read_upload(row, impl_->secret_texts); });
    });
}
Task<Result<>> PostgresLedger::begin_upload(assets::BlobRecord record, Time at) {
    return impl_->writer.write(postgres::begin_upload(record, at));
}
Task<Result<>> PostgresLedger::uploaded(
    assets::BlobRecord record, std::string instead_of, Time now
) {
    return impl_->writer.write(end_upload(record, instead_of, now));
}
Task<Result<>> PostgresLedger::upload_later(assets::BlobRecord record, Time at, std::string error) {
    return impl_->writer.write(postpone_upload(record, at, error));
}
Task<Result<>> PostgresLedger::note_upload(assets::BlobRecord record, std::string note) {
    return impl_->writer.write(postgres::note_upload(record, note, impl_->secret_texts));
}
Task<Result<>> PostgresLedger::give_up(assets::BlobRecord record, Time goes_at) {
    return impl_->writer.write(postgres::give_up(record, impl_->clock.now(), goes_at));
}
Task<Result<>> PostgresLedger::set_storage_class(assets::BlobRecord record) {
    return impl_->writer.write(postgres::set_storage_class(record));
}
Task<Result<std::vector<assets::BlobRecord>>> PostgresLedger::blobs_in(
    std::string store, std::optional<assets::BlobRecord> after, int limit
) {
    return impl_->ask_one(find_blobs_in(store, after, limit), [](const Rows& rows) {
        return rows.all(read_blob);
    });
}
Task<Result<PostgresLedger::Waiting>> PostgresLedger::waiting() {
    return impl_->ask_one(count_waiting(), [](const Rows& rows) -> Result<Waiting> {
        return read_waiting(rows[0]);
    });
}

Task<Result<std::vector<notify::Delivery>>> PostgresLedger::due(Time now, int limit) {
    return impl_->writer.write(ClaimDeliveries(now, limit, impl_->telling));
}
Task<Result<std::optional<Time>>> PostgresLedger::next_due() {
    return impl_->ask_one(find_next_due(), [](const Rows& rows) {
        return rows.first([](const Row& row) -> Result<Time> { return row.time(0); });
    });
}
Task<Result<>> PostgresLedger::delivered(notify::Delivery delivery, Time now) {
    return impl_->writer.write(EndDelivery(std::move(delivery), true, now, {}));
}
Task<Result<>> PostgresLedger::retry_at(
    notify::Delivery delivery, Time next_attempt_at, std::string error
) {
    return impl_->writer.write(PostponeDelivery(std::move(delivery), next_attempt_at, error, true));
}
Task<Result<>> PostgresLedger::put_aside(
    notify::Delivery delivery, Time next_attempt_at, std::string why
) {
    return impl_->writer.write(PostponeDelivery(std::move(delivery), next_attempt_at, why, false));
}
Task<Result<>> PostgresLedger::give_up(notify::Delivery delivery, Time now, std::string error) {
    return impl_->writer.write(EndDelivery(std::move(delivery), false, now, error));
}
Task<Result<int>> PostgresLedger::give_up_waiting(
    std::string endpoint, Time now, std::string why, int limit
) {
    return impl_->writer.write(GiveUpWaiting(std::move(endpoint), now, why, limit));
}
Task<Result<>> PostgresLedger::hasten(Time now, Millis by) {
    return impl_->writer.write(HastenDeliveries(now, by));
}
Task<Result<notify::DeliveryPage>> PostgresLedger::list_deliveries(notify::DeliveryQuery query) {
    auto statements = postgres::list_deliveries(query);
    return impl_->ask(
        std::move(statements),
        [this, query = std::move(query)](const std::vector<Rows>& answers) {
            return read_delivery_page(answers, query, impl_->telling);
        }
    );
}
Task<Result<std::optional<notify::DeliveryView>>> PostgresLedger::find_delivery(
    notify::DeliveryKey key
) {
    return impl_->ask_one(postgres::find_delivery(key), [this](const Rows& rows) {
        return read_delivery(rows, impl_->telling);
    });
}
Task<Result<int>> PostgresLedger::count_dead(notify::DeadFilter filter, int limit) {
    return impl_->ask_one(postgres::count_dead(filter, limit), [](const Rows& rows) {
        return Result<int>(static_cast<int>(rows[0].integer(0)));
    });
}
Task<Result<int>> PostgresLedger::replay_dead(notify::DeadFilter filter, Time now, int limit) {
    return impl_->writer.write(ReplayDead(std::move(filter), now, limit));
}
Task<Result<int>> PostgresLedger::purge_dead(notify::DeadFilter filter, int limit) {
    return impl_->writer.write(PurgeDead(std::move(filter), limit));
}
Task<Result<>> PostgresLedger::save_endpoint(notify::Endpoint endpoint) {
    return impl_->writer.write(SaveEndpoint(endpoint, impl_->secret_texts));
}
Task<Result<bool>> PostgresLedger::remove_endpoint(notify::EndpointId id) {
    return impl_->writer.write(RemoveEndpoint(id));
}
Task<Result<notify::AllEndpoints>> PostgresLedger::all_endpoints() {
    return impl_->ask(find_all_endpoints(), [this](const std::vector<Rows>& answers) {
        return read_all_endpoints(answers, impl_->secret_texts);
    });
}
Task<Result<std::uint64_t>> PostgresLedger::endpoint_changes() {
    return impl_->ask_one(count_endpoint_changes(), [](const Rows& rows) -> Result<std::uint64_t> {
        return rows.empty() ? 0 : static_cast<std::uint64_t>(rows[0].integer(0));
    });
}

Task<Result<>> PostgresLedger::save_identity(auth::IdentityRecord record) {
    return impl_->writer.write(SaveIdentity(record));
}
Task<Result<bool>> PostgresLedger::remove_identity(auth::IdentityKind kind, std::string id) {
    return impl_->writer.write(RemoveIdentity(kind, std::move(id)));
}
Task<Result<auth::AllIdentities>> PostgresLedger::all_identities() {
    return impl_->ask(find_all_identities(), read_all_identities);
}
Task<Result<std::uint64_t>> PostgresLedger::identity_changes() {
    return impl_->ask_one(count_identity_changes(), [](const Rows& rows) -> Result<std::uint64_t> {
        return rows.empty() ? 0 : static_cast<std::uint64_t>(rows[0].integer(0));
    });
}
Task<Result<>> PostgresLedger::note_key_uses(auth::KeyUses uses) {
    return impl_->writer.write(NoteKeyUses(uses));
}

Task<Result<>> PostgresLedger::save_model(models::ModelRecord record) {
    return impl_->writer.write(SaveModel(record));
}
Task<Result<models::AllModels>> PostgresLedger::all_models() {
    return impl_->ask(find_all_models(), read_all_models);
}
Task<Result<std::uint64_t>> PostgresLedger::model_changes() {
    return impl_->ask_one(count_model_changes(), [](const Rows& rows) -> Result<std::uint64_t> {
        return rows.empty() ? 0 : static_cast<std::uint64_t>(rows[0].integer(0));
    });
}

Task<Result<>> PostgresLedger::save_session(auth::SessionRecord record, int kept_max) {
    return impl_->writer.write(SaveSession(std::move(record), kept_max));
}
Task<Result<std::optional<auth::SessionRecord>>> PostgresLedger::find_session(
    auth::SessionKind kind, std::string id
) {
    return impl_->ask_one(postgres::find_session(kind, id), [](const Rows& rows) {
        return rows.first(read_session);
    });
}
Task<Result<std::optional<auth::SessionRecord>>> PostgresLedger::take_session(
    auth::SessionKind kind, std::string id
) {
    return impl_->writer.write(TakeSession(kind, std::move(id)));
}
Task<Result<>> PostgresLedger::note_session_use(std::string id, Time used_at, Time ends_at) {
    return impl_->writer.write(NoteSessionUse(std::move(id), used_at, ends_at));
}
Task<Result<std::vector<auth::SessionRecord>>> PostgresLedger::list_sessions(
    auth::SessionQuery query
) {
    return impl_->ask_one(postgres::list_sessions(query), [](const Rows& rows) {
        return rows.all(read_session);
    });
}

Task<Result<>> PostgresLedger::save_instance(
    fleet::Instance instance,
    std::optional<fleet::FleetEvent> event,
    std::optional<jobs::Term> under
) {
    return impl_->writer.write(
        SaveInstance(std::move(instance), std::move(event), impl_->secret_texts), std::move(under)
    );
}
Task<Result<std::vector<fleet::Instance>>> PostgresLedger::open_instances(std::string fleet) {
    return impl_->ask_one(find_open_instances(fleet), [this](const Rows& rows) {
        return rows.all([this](const Row& row) { return read_instance(row, impl_->secret_texts); });
    });
}
Task<Result<std::vector<fleet::Instance>>> PostgresLedger::ended_instances(
    std::string fleet, int limit
) {
    return impl_->ask_one(find_ended_instances(fleet, limit), [this](const Rows& rows) {
        return rows.all([this](const Row& row) { return read_instance(row, impl_->secret_texts); });
    });
}
Task<Result<>> PostgresLedger::save_pool(
    fleet::PoolRecord record, std::optional<fleet::FleetEvent> event
) {
    return impl_->writer.write(SavePool(std::move(record), std::move(event)));
}
Task<Result<std::vector<fleet::PoolRecord>>> PostgresLedger::pool_records(std::string fleet) {
    return impl_->ask_one(find_pool_records(fleet), [](const Rows& rows) {
        return rows.all(read_pool_record);
    });
}
Task<Result<>> PostgresLedger::note_fleet_event(fleet::FleetEvent event) {
    return impl_->writer.write(NoteFleetEvent(std::move(event)));
}
Task<Result<std::vector<fleet::FleetEvent>>> PostgresLedger::fleet_events(
    fleet::FleetEventQuery query
) {
    return impl_->ask_one(find_fleet_events(query), [](const Rows& rows) {
        return rows.all(read_fleet_event);
    });
}
Task<Result<std::vector<fleet::FleetEvent>>> PostgresLedger::fleet_events_after(
    std::string fleet, fleet::FleetEventPlace after, int limit
) {
    return impl_->ask_one(find_fleet_events_after(fleet, after, limit), [](const Rows& rows) {
        return rows.all(read_fleet_event);
    });
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
    return std::make_unique<LedLedger>(
        *this, impl_->writer, impl_->secrets, impl_->telling, impl_->purge_cursor, std::move(term)
    );
}
Task<Result<jobs::ArrivalPage>> PostgresLedger::arrivals(
    std::string domain, jobs::ArrivalCursor after, int limit, jobs::IsKnown is_known
) {
    if (!is_known) {
        auto page = co_await impl_->ask(
            find_arrivals(domain, after, limit),
            [after, limit](const std::vector<Rows>& answers) {
                return read_arrivals(answers, after, limit);
            }
        );
        if (page) {
            impl_->secrets.open(page->jobs);
        }
        co_return page;
    }
    auto glance = co_await impl_->ask(
        glance_at_arrivals(domain, after, limit),
        [after, limit](const std::vector<Rows>& answers) -> Result<ArrivalGlance> {
            return read_glance(answers, after, limit);
        }
    );
    if (!glance) {
        co_return fail(std::move(glance.error()));
    }
    jobs::ArrivalPage page;
    page.next = glance->next;
    page.more = glance->more;
    std::vector<JobId> unknown;
    for (const jobs::Arrival& one : glance->all) {
        if (!is_known(one)) {
            unknown.push_back(one.job);
        }
    }
    if (!unknown.empty()) {
        auto found = co_await impl_->ask_one(find_arrived(unknown), read_arrived);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        page.jobs = std::move(*found);
        // Since the glance.
        std::erase_if(page.jobs, [](const jobs::Unfinished& one) {
            return jobs::is_terminal(one.job.state);
        });
        impl_->secrets.open(page.jobs);
    }
    co_return page;
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

Task<Result<Time>> PostgresLedger::sign_in(NodeId node, json::object about) {
    return impl_->writer.write(SignIn(node, about));
}
Task<Result<>> PostgresLedger::sign_out(NodeId node) {
    return impl_->writer.write(SignOut(node));
}
Task<Result<std::vector<cluster::RosterEntry>>> PostgresLedger::roster() {
    return impl_->ask_one(find_roster(), [](const Rows& rows) {
        return rows.all(read_roster_entry);
    });
}

}  // namespace comfyd::ledger
