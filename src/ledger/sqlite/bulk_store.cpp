#include "ledger/sqlite/bulk_store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "ledger/bulk_codec.hpp"
#include "ledger/codec.hpp"
#include "ledger/sqlite/asset_uses.hpp"

namespace comfyd::ledger::sqlite {
namespace {

constexpr char kFindKey[] = "SELECT data FROM bulks WHERE tenant = ? AND key = ?";
constexpr char kInsert[] =
    "INSERT INTO bulks (id, tenant, key, revision, is_open, ended_at, data) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr char kInsertPlan[] = "INSERT INTO bulk_plans (bulk, plan) VALUES (?, ?)";
constexpr char kRevision[] = "SELECT revision FROM bulks WHERE id = ?";
constexpr char kUpdate[] =
    "UPDATE bulks SET revision = ?, is_open = ?, ended_at = ?, data = ? WHERE id = ?";
constexpr char kInsertItem[] =
    "INSERT OR REPLACE INTO bulk_items (bulk, place, state, job, custom_id, params, outcome) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr char kUpdateItem[] =
    "UPDATE bulk_items SET state = ?, job = ?, outcome = ? WHERE bulk = ? AND place = ?";
constexpr char kRemoveItems[] = "DELETE FROM bulk_items WHERE bulk = ?";
constexpr char kRemovePlan[] = "DELETE FROM bulk_plans WHERE bulk = ?";
constexpr char kRemove[] = "DELETE FROM bulks WHERE id = ?";

constexpr char kFind[] = "SELECT data FROM bulks WHERE id = ?";
constexpr char kFindPlan[] = "SELECT plan FROM bulk_plans WHERE bulk = ?";
constexpr char kList[] =
    "SELECT data FROM bulks WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?";
constexpr char kOpen[] = "SELECT data FROM bulks WHERE is_open = 1 ORDER BY id LIMIT ?";
constexpr char kEnded[] =
    "SELECT id FROM bulks WHERE is_open = 0 AND ended_at < ? ORDER BY ended_at LIMIT ?";
constexpr char kItems[] =
    "SELECT place, state, job, custom_id, params, outcome FROM bulk_items "
    "WHERE bulk = ? AND place > ? ORDER BY place LIMIT ?";
constexpr char kItemsInState[] =
    "SELECT place, state, job, custom_id, params, outcome FROM bulk_items "
    "WHERE bulk = ? AND state = ? AND place > ? ORDER BY place LIMIT ?";

// Assets are held for a bulk as for a job: by its id, until it has ended.
JobId holder(const jobs::BulkId& id) {
    return JobId{id.uuid};
}

std::optional<std::string> key_of(const jobs::Bulk& bulk) {
    return bulk.idempotency_key.empty() ? std::nullopt : std::optional(bulk.idempotency_key);
}

Result<jobs::Bulk> read_bulk(const Query& row) {
    return decode_bulk(row.text(0));
}

Result<jobs::BulkItem> read_item(const Query& row) {
    jobs::BulkItem item;
    item.index = static_cast<int>(row.integer(0));
    item.state = static_cast<jobs::ItemState>(row.integer(1));
    if (!row.is_null(2)) {
        item.job = JobId{row.uuid(2)};
    }
    item.custom_id = row.text(3);
    item.params = row.text(4);
    if (!row.is_null(5)) {
        if (auto decoded = decode_outcome(row.text(5), item); !decoded) {
            return fail(std::move(decoded.error()));
        }
    }
    return item;
}

Result<> write_item(Session& session, const jobs::BulkId& bulk, const jobs::BulkItem& item) {
    const auto outcome = encode_outcome(item);
    auto written = Query(session.db, kInsertItem)
                       .bind(
                           bulk,
                           item.index,
                           static_cast<int>(item.state),
                           item.job,
                           item.custom_id,
                           item.params,
                           outcome
                       )
                       .run();
    return written ? add_uses(session.db, holder(bulk), mentioned_assets(item.params)) : written;
}

Result<> change_item(Session& session, const jobs::BulkId& bulk, const jobs::BulkItem& item) {
    const auto outcome = encode_outcome(item);
    return Query(session.db, kUpdateItem)
        .bind(static_cast<int>(item.state), item.job, outcome, bulk, item.index)
        .run();
}

}  // namespace

Result<jobs::BulkAdded> AddBulk::operator()(Session& session) {
    if (!bulk.idempotency_key.empty()) {
        Query query(session.db, kFindKey);
        query.bind(bulk.tenant, bulk.idempotency_key);
        auto held = first_row(query, read_bulk);
        if (!held) {
            return fail(std::move(held.error()));
        }
        if (*held) {
            return jobs::BulkAdded{false, std::move(**held)};
        }
    }
    const std::string data = encode_bulk(bulk);
    auto added = Query(session.db, kInsert)
                     .bind(
                         bulk.id,
                         bulk.tenant,
                         key_of(bulk),
                         bulk.revision,
                         bulk.is_open() ? 1 : 0,
                         bulk.ended_at,
                         data
                     )
                     .run();
    if (added) {
        added = Query(session.db, kInsertPlan).bind(bulk.id, plan).run();
    }
    if (added) {
        added = add_uses(session.db, holder(bulk.id), mentioned_assets(plan));
    }
    if (!added) {
        return fail(std::move(added.error()));
    }
    return jobs::BulkAdded{true};
}

std::size_t CommitBulk::bytes() const {
    std::size_t total = 1024 + change.moved.size() * 512;
    for (const jobs::BulkItem& item : change.added) {
        total += 128 + item.params.size() + item.custom_id.size();
    }
    return total;
}

Result<> CommitBulk::operator()(Session& session) {
    const jobs::Bulk& bulk = change.bulk;
    {
        Query query(session.db, kRevision);
        const auto row = query.bind(bulk.id).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return fail(no_bulk(bulk.id));
        }
        if (query.integer(0) != bulk.revision - 1) {
            return fail(stale_bulk(bulk));
        }
    }
    const std::string data = encode_bulk(bulk);
    auto written = Query(session.db, kUpdate)
                       .bind(bulk.revision, bulk.is_open() ? 1 : 0, bulk.ended_at, data, bulk.id)
                       .run();
    for (auto item = change.added.begin(); written && item != change.added.end(); ++item) {
        written = write_item(session, bulk.id, *item);
    }
    for (auto item = change.moved.begin(); written && item != change.moved.end(); ++item) {
        written = change_item(session, bulk.id, *item);
    }
    if (written && has_ended(bulk.state)) {
        written = drop_uses(session.db, holder(bulk.id));
    }
    return written;
}

Result<> RemoveBulk::operator()(Session& session) {
    for (const char* sql : {kRemoveItems, kRemovePlan, kRemove}) {
        if (auto removed = Query(session.db, sql).bind(id).run(); !removed) {
            return removed;
        }
    }
    return drop_uses(session.db, holder(id));
}

Result<std::optional<jobs::Bulk>> find_bulk(Database& db, const jobs::BulkId& id) {
    Query query(db, kFind);
    query.bind(id);
    return first_row(query, read_bulk);
}

Result<std::optional<std::string>> find_bulk_plan(Database& db, const jobs::BulkId& id) {
    Query query(db, kFindPlan);
    query.bind(id);
    return first_row(query, [](const Query& row) -> Result<std::string> { return row.string(0); });
}

Result<jobs::BulkPage> list_bulks(
    Database& db, const std::string& tenant, std::optional<jobs::BulkId> before, int limit
) {
    jobs::BulkId below;
    below.uuid.bytes.fill(0xFF);
    limit = std::clamp(limit, 1, jobs::kBulkPageMax);
    Query query(db, kList);
    query.bind(tenant, before.value_or(below), limit + 1);
    auto bulks = all_rows(query, read_bulk);
    if (!bulks) {
        return fail(std::move(bulks.error()));
    }
    jobs::BulkPage page{std::move(*bulks), std::nullopt};
    if (page.bulks.size() > static_cast<std::size_t>(limit)) {
        page.bulks.pop_back();
        page.next_cursor = page.bulks.back().id;
    }
    return page;
}

Result<std::vector<jobs::BulkItem>> find_bulk_items(
    Database& db, const jobs::BulkItemQuery& query
) {
    const int limit = std::clamp(query.limit, 1, jobs::kBulkPageMax);
    Query rows(db, query.state ? kItemsInState : kItems);
    if (query.state) {
        rows.bind(query.bulk, static_cast<int>(*query.state), query.after, limit);
    } else {
        rows.bind(query.bulk, query.after, limit);
    }
    return all_rows(rows, read_item);
}

Result<std::vector<jobs::Bulk>> find_open_bulks(Database& db, int limit) {
    Query query(db, kOpen);
    query.bind(limit);
    return all_rows(query, read_bulk);
}

Result<std::vector<jobs::BulkId>> find_ended_bulks(Database& db, Time before, int limit) {
    Query query(db, kEnded);
    query.bind(before, limit);
    return all_rows(query, [](const Query& row) -> Result<jobs::BulkId> {
        return jobs::BulkId{row.uuid(0)};
    });
}

}  // namespace comfyd::ledger::sqlite
