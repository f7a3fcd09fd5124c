#include "ledger/postgres/bulk_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/bulk_codec.hpp"
#include "ledger/mentioned_assets.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kAdd[] =
    "WITH made AS (INSERT INTO bulks (id, tenant, key, revision, stamp, is_open, ended_at, data) "
    "VALUES ($1, $2, $3, $4, $1, $5 <> 0, $6, $7) ON CONFLICT DO NOTHING RETURNING id), "
    "planned AS (INSERT INTO bulk_plans (bulk, plan) SELECT id, $8 FROM made), "
    "used AS (INSERT INTO bulk_assets (bulk, asset) SELECT m.id, n.asset FROM made m, "
    "unnest($9) AS n (asset) ON CONFLICT DO NOTHING) SELECT id FROM made";
constexpr char kFindHeld[] = "SELECT data FROM bulks WHERE id = $1";
constexpr char kFindKey[] = "SELECT data FROM bulks WHERE tenant = $1 AND key = $2";
// Whether it was written now, and who wrote what was there before.
constexpr char kCommit[] =
    "WITH changed AS (UPDATE bulks SET revision = $2, stamp = $3, is_open = $4 <> 0, "
    "ended_at = $5, data = $6 WHERE id = $1 AND revision = $2 - 1 RETURNING id), "
    "added AS (INSERT INTO bulk_items (bulk, place, state, job, custom_id, params, outcome) "
    "SELECT c.id, n.place, n.state, n.job, n.custom_id, n.params, n.outcome FROM changed c, "
    "unnest($7, $8, $9, $10, $11, $12) AS n (place, state, job, custom_id, params, outcome) "
    "ON CONFLICT (bulk, place) DO UPDATE SET state = excluded.state, job = excluded.job, "
    "custom_id = excluded.custom_id, params = excluded.params, outcome = excluded.outcome), "
    "moved AS (UPDATE bulk_items i SET state = n.state, job = n.job, outcome = n.outcome "
    "FROM changed c, unnest($13, $14, $15, $16) AS n (place, state, job, outcome) "
    "WHERE i.bulk = c.id AND i.place = n.place), "
    "used AS (INSERT INTO bulk_assets (bulk, asset) SELECT c.id, n.asset FROM changed c, "
    "unnest($17) AS n (asset) ON CONFLICT DO NOTHING), "
    "freed AS (DELETE FROM bulk_assets a USING changed c WHERE a.bulk = c.id AND $18 <> 0) "
    "SELECT (SELECT count(*) FROM changed), b.stamp FROM bulks b WHERE b.id = $1";
constexpr char kRemoveItems[] = "DELETE FROM bulk_items WHERE bulk = $1";
constexpr char kRemoveUses[] = "DELETE FROM bulk_assets WHERE bulk = $1";
constexpr char kRemovePlan[] = "DELETE FROM bulk_plans WHERE bulk = $1";
constexpr char kRemove[] = "DELETE FROM bulks WHERE id = $1";

constexpr char kFindPlan[] = "SELECT plan FROM bulk_plans WHERE bulk = $1";
constexpr char kList[] =
    "SELECT data FROM bulks WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
constexpr char kOpen[] = "SELECT data FROM bulks WHERE is_open ORDER BY id LIMIT $1";
constexpr char kEnded[] =
    "SELECT id FROM bulks WHERE NOT is_open AND ended_at < $1 ORDER BY ended_at LIMIT $2";
constexpr char kItems[] =
    "SELECT place, state, job, custom_id, params, outcome FROM bulk_items "
    "WHERE bulk = $1 AND place > $2 ORDER BY place LIMIT $3";
constexpr char kItemsInState[] =
    "SELECT place, state, job, custom_id, params, outcome FROM bulk_items "
    "WHERE bulk = $1 AND state = $2 AND place > $3 ORDER BY state, place LIMIT $4";

void add_mentions(Array& into, std::string_view text) {
    const MentionedAssets mentioned = mentioned_assets(text);
    for (const AssetId& id : mentioned.ids) {
        into.add(id.to_string());
    }
    for (const std::string& hash : mentioned.hashes) {
        into.add(hash);
    }
}

std::optional<std::string> key_of(const jobs::Bulk& bulk) {
    return bulk.idempotency_key.empty() ? std::nullopt : std::optional(bulk.idempotency_key);
}

}  // namespace

bool AddBulk::join(Batch& batch) {
    Array assets(kText);
    add_mentions(assets, plan_);
    place_ = batch.add(
        {kAdd,
         {bulk_.id,
          bulk_.tenant,
          key_of(bulk_),
          bulk_.revision,
          bulk_.is_open() ? 1 : 0,
          bulk_.ended_at,
          encode_bulk(bulk_),
          stored_,
          assets.value()}}
    );
    return true;
}

void AddBulk::conclude(const Batch& batch) {
    if (!batch.answer(place_).empty()) {
        outcome.emplace(jobs::BulkAdded{true});
    }
}

Statements AddBulk::question(const Circumstances&) {
    return {{kFindHeld, {bulk_.id}}, {kFindKey, {bulk_.tenant, key_of(bulk_)}}};
}

void AddBulk::hear(const Circumstances& at, const std::vector<Rows>& answers) {
    if (!answers.at(0).empty()) {
        if (at.is_again) {
            outcome.emplace(jobs::BulkAdded{true});
        } else {
            outcome.emplace(fail(stale_bulk(bulk_)));
        }
        return;
    }
    auto held = answers.at(1).first(read_bulk);
    if (!held) {
        outcome.emplace(fail(std::move(held.error())));
    } else if (*held) {
        outcome.emplace(jobs::BulkAdded{false, std::move(**held)});
    }
}

std::size_t CommitBulk::bytes() const {
    std::size_t total = 1024 + change_.moved.size() * 512;
    for (const jobs::BulkItem& item : change_.added) {
        total += 128 + item.params.size() + item.custom_id.size();
    }
    return total;
}

bool CommitBulk::join(Batch& batch) {
    const jobs::Bulk& bulk = change_.bulk;
    Array assets(kText);
    Array places(kInteger);
    Array states(kInteger);
    Array ids(kUuid);
    Array names(kText);
    Array params(kText);
    Array outcomes(kText);
    for (const jobs::BulkItem& item : change_.added) {
        places.add(item.index);
        states.add(static_cast<int>(item.state));
        ids.add(item.job);
        names.add(item.custom_id);
        params.add(item.params);
        outcomes.add(encode_outcome(item));
        add_mentions(assets, item.params);
    }
    Array moved_places(kInteger);
    Array moved_states(kInteger);
    Array moved_ids(kUuid);
    Array moved_outcomes(kText);
    for (const jobs::BulkItem& item : change_.moved) {
        moved_places.add(item.index);
        moved_states.add(static_cast<int>(item.state));
        moved_ids.add(item.job);
        moved_outcomes.add(encode_outcome(item));
    }
    place_ = batch.add(
        {kCommit,
         {bulk.id,
          bulk.revision,
          stamp_,
          bulk.is_open() ? 1 : 0,
          bulk.ended_at,
          encode_bulk(bulk),
          places.value(),
          states.value(),
          ids.value(),
          names.value(),
          params.value(),
          outcomes.value(),
          moved_places.value(),
          moved_states.value(),
          moved_ids.value(),
          moved_outcomes.value(),
          assets.value(),
          has_ended(bulk.state) ? 1 : 0}}
    );
    return true;
}

void CommitBulk::conclude(const Batch& batch) {
    const Rows& rows = batch.answer(place_);
    if (rows.empty()) {
        outcome.emplace(fail(no_bulk(change_.bulk.id)));
    } else if (rows[0].integer(0) != 0 || rows[0].uuid(1) == stamp_) {
        outcome.emplace();
    } else {
        outcome.emplace(fail(stale_bulk(change_.bulk)));
    }
}

bool RemoveBulk::join(Batch& batch) {
    for (const char* sql : {kRemoveItems, kRemoveUses, kRemovePlan, kRemove}) {
        batch.add({sql, {id_}});
    }
    return true;
}

Statement find_bulk(const jobs::BulkId& id) {
    return {kFindHeld, {id}};
}

Statement find_bulk_plan(const jobs::BulkId& id) {
    return {kFindPlan, {id}};
}

Statement list_bulks(const std::string& tenant, std::optional<jobs::BulkId> before, int limit) {
    jobs::BulkId below;
    below.uuid.bytes.fill(0xFF);
    return {kList, {tenant, before.value_or(below), std::clamp(limit, 1, jobs::kBulkPageMax) + 1}};
}

Statement find_bulk_items(const jobs::BulkItemQuery& query) {
    const int limit = std::clamp(query.limit, 1, jobs::kBulkPageMax);
    if (query.state) {
        return {kItemsInState, {query.bulk, static_cast<int>(*query.state), query.after, limit}};
    }
    return {kItems, {query.bulk, query.after, limit}};
}

Statement find_open_bulks(int limit) {
    return {kOpen, {limit}};
}

Statement find_ended_bulks(Time before, int limit) {
    return {kEnded, {before, limit}};
}

Result<jobs::Bulk> read_bulk(const Row& row) {
    return decode_bulk(row.text(0));
}

Result<std::string> read_bulk_plan(
    const Row& row, const jobs::BulkId& id, const SecretTexts& texts
) {
    auto plan = texts.read(row.string(0), id.to_string());
    if (!plan) {
        return fail(
            Code::storage_unavailable,
            "the plan of batch " + id.to_string() +
                " cannot be read: it was stored under another 'cluster.secret'"
        );
    }
    return std::move(*plan);
}

Result<jobs::BulkItem> read_bulk_item(const Row& row) {
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

Result<jobs::BulkPage> read_bulk_page(const Rows& rows, int limit) {
    auto bulks = rows.all(read_bulk);
    if (!bulks) {
        return fail(std::move(bulks.error()));
    }
    limit = std::clamp(limit, 1, jobs::kBulkPageMax);
    jobs::BulkPage page{std::move(*bulks), std::nullopt};
    if (page.bulks.size() > static_cast<std::size_t>(limit)) {
        page.bulks.pop_back();
        page.next_cursor = page.bulks.back().id;
    }
    return page;
}

}  // namespace comfyd::ledger::postgres
