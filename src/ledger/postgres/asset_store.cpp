#include "ledger/postgres/asset_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/postgres/blob_records.hpp"

namespace comfyd::ledger::postgres {
namespace {

#define COMFYD_ASSET_COLUMNS                                                                     \
    "id, tenant, hash, size_bytes, content_type, file_path, tags, created_at, expires_at, job, " \
    "crc32, store, retention, moves_at"

constexpr char kHoldContent[] = "SELECT 1 FROM contents WHERE hash = $1 FOR KEY SHARE";
constexpr char kInsert[] =
    "WITH added AS (INSERT INTO assets (" COMFYD_ASSET_COLUMNS
    ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) "
    "ON CONFLICT (id) DO NOTHING RETURNING id), "
    "kept AS (INSERT INTO contents (hash, bytes) SELECT $3, $15 FROM added WHERE $15 IS NOT NULL "
    "ON CONFLICT (hash) DO NOTHING) SELECT id FROM added";
constexpr char kHasAsset[] = "SELECT 1 FROM assets WHERE id = $1";
constexpr char kFind[] = "SELECT " COMFYD_ASSET_COLUMNS " FROM assets WHERE id = $1";
constexpr char kFindByHash[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets WHERE hash = $1 AND tenant = $2 ORDER BY id DESC LIMIT 1";
constexpr char kReadContent[] = "SELECT bytes FROM contents WHERE hash = $1";
constexpr char kExpired[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets a WHERE expires_at IS NOT NULL AND expires_at <= $1 AND (expires_at, id) > "
    "($2, $3) AND NOT " COMFYD_ASSET_IS_USED " ORDER BY expires_at, id LIMIT $4";
constexpr char kMoving[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets WHERE moves_at IS NOT NULL AND moves_at <= $1 AND (moves_at, id) > ($2, $3) "
    "ORDER BY moves_at, id LIMIT $4";
constexpr char kSharing[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets WHERE hash = $1 AND coalesce(store, 'local') = $2 LIMIT $3";
constexpr char kSumBytes[] =
    "SELECT coalesce(sum(size_bytes), 0)::int8 FROM assets WHERE tenant = $1";
constexpr char kSetCrc32[] = "UPDATE assets SET crc32 = $2 WHERE id = $1";
constexpr char kSetMoves[] = "UPDATE assets SET moves_at = $2 WHERE id = $1";
constexpr char kFindHeld[] =
    "SELECT a.hash, EXISTS (SELECT 1 FROM jobs j WHERE j.id = a.job AND j.outcome IS NULL) "
    "OR " COMFYD_ASSET_IS_USED " FROM assets a WHERE a.id = $1 FOR UPDATE OF a";
constexpr char kRemove[] = "DELETE FROM assets WHERE id = $1";
constexpr char kLockContents[] =
    "SELECT 1 FROM contents WHERE hash = ANY ($1) ORDER BY hash FOR UPDATE";
constexpr char kRemoveContents[] =
    "DELETE FROM contents c WHERE c.hash = ANY ($1) AND "
    "NOT EXISTS (SELECT 1 FROM assets a WHERE a.hash = c.hash)";

}  // namespace

std::size_t AddAsset::bytes() const {
    std::size_t total = 256 + asset_.file_path.size() + asset_.content_type.size() +
                        (asset_.bytes ? asset_.bytes->size() : 0);
    for (const std::string& tag : asset_.tags) {
        total += tag.size();
    }
    return total;
}

bool AddAsset::join(Batch& batch) {
    const auto tags = encode(json::array(asset_.tags.begin(), asset_.tags.end()));
    postgres::Value content(kBytes, std::nullopt);
    if (asset_.bytes) {
        content.bytes = *asset_.bytes;
    }
    batch.add({kHoldContent, {asset_.hash}});
    place_ = batch.add(
        {kInsert,
         {asset_.id,
          asset_.tenant,
          asset_.hash,
          asset_.size_bytes,
          asset_.content_type,
          asset_.file_path,
          tags,
          asset_.created_at,
          asset_.expires_at,
          asset_.job,
          asset_.crc32,
          stored_store(asset_.store),
          stored_retention(asset_.retention),
          asset_.moves_at,
          content}}
    );
    BlobNeeds needs;
    needs.add(
        {asset_.id,
         asset_.hash,
         asset_.size_bytes,
         asset_.store,
         asset_.generation,
         asset_.bytes != nullptr},
        batch.at.now
    );
    for (Statement& statement : needs.statements(batch.at.now)) {
        batch.add(std::move(statement));
    }
    return true;
}

void AddAsset::conclude(const Batch& batch) {
    if (!batch.answer(place_).empty()) {
        outcome.emplace();
    }
}

Statements AddAsset::question(const Circumstances&) {
    return {{kHasAsset, {asset_.id}}};
}

void AddAsset::hear(const Circumstances& at, const std::vector<Rows>& answers) {
    if (answers.at(0).empty()) {
        return;
    }
    if (at.is_again) {
        outcome.emplace();
    } else {
        outcome.emplace(
            fail(Code::conflict, "there is an asset " + asset_.id.to_string() + " already")
        );
    }
}

Task<Done> RemoveAsset::run(Transaction& transaction) {
    auto found = co_await transaction.ask({{kFindHeld, {id_}}});
    if (!found) {
        co_return tl::unexpected(std::move(found.error()));
    }
    const Rows& rows = found->at(0);
    if (rows.empty()) {
        outcome.emplace(transaction.at.is_again);
        co_return Done();
    }
    if (rows[0].integer(1) != 0) {
        outcome.emplace(fail(
            Code::asset_in_use,
            "asset " + id_.to_string() +
                " belongs to a job that has not ended, or a named workflow takes it"
        ));
        co_return Done();
    }
    Array hashes(kText);
    hashes.add(rows[0].string(0));
    Statements last{{kRemove, {id_}}};
    for (Statement& statement : drop_contents(hashes, transaction.at.now)) {
        last.push_back(std::move(statement));
    }
    auto done = co_await transaction.commit(std::move(last));
    if (done) {
        outcome.emplace(true);
    }
    co_return done;
}

Statements drop_contents(const Array& hashes, Time now) {
    return {
        {kLockContents, {hashes.value()}},
        {kRemoveContents, {hashes.value()}},
        look_at_blobs(hashes, now)
    };
}

std::optional<std::string> stored_store(const std::string& store) {
    return store.empty() || store == assets::kLocalStore ? std::nullopt : std::optional(store);
}

std::optional<int> stored_retention(const std::optional<assets::RetentionClass>& retention) {
    return retention ? std::optional(static_cast<int>(*retention)) : std::nullopt;
}

Statement find_asset(const AssetId& id) {
    return {kFind, {id}};
}
Statement find_asset_by_hash(const std::string& tenant, const std::string& hash) {
    return {kFindByHash, {hash, tenant}};
}
Statement find_expired_assets(Time now, const std::optional<assets::Asset>& after, int limit) {
    const Time from = after ? after->expires_at.value_or(Time()) : Time(Millis(-1));
    const AssetId id = after ? after->id : AssetId{};
    return {kExpired, {now, from, id, std::clamp(limit, 1, kExpiredLimitMax)}};
}
Statement find_moving_assets(Time now, const std::optional<assets::Asset>& after, int limit) {
    const Time from = after ? after->moves_at.value_or(Time()) : Time(Millis(-1));
    const AssetId id = after ? after->id : AssetId{};
    return {kMoving, {now, from, id, std::clamp(limit, 1, kExpiredLimitMax)}};
}
Statement find_sharing_assets(const std::string& hash, const std::string& store, int limit) {
    return {kSharing, {hash, store, std::clamp(limit, 1, kExpiredLimitMax)}};
}
Statement sum_asset_bytes(const std::string& tenant) {
    return {kSumBytes, {tenant}};
}
Statement set_asset_crc32(const AssetId& id, std::uint32_t crc32) {
    return {kSetCrc32, {id, crc32}};
}
Statement set_asset_moves(const AssetId& id, std::optional<Time> moves_at) {
    return {kSetMoves, {id, moves_at}};
}
Statement find_kept_bytes(const std::string& hash) {
    return {kReadContent, {hash}};
}

Result<assets::Asset> read_asset(const Row& row) {
    assets::Asset asset;
    asset.id.uuid = row.uuid(0);
    asset.tenant = row.text(1);
    asset.hash = row.text(2);
    asset.size_bytes = static_cast<std::uint64_t>(row.integer(3));
    asset.content_type = row.text(4);
    asset.file_path = row.text(5);
    const auto tags = decode_array(row.text(6));
    if (!tags) {
        return fail(tags.error());
    }
    for (const json::value& tag : *tags) {
        if (tag.is_string()) {
            asset.tags.emplace_back(tag.get_string());
        }
    }
    asset.created_at = row.time(7);
    asset.expires_at = row.optional_time(8);
    if (!row.is_null(9)) {
        asset.job = JobId{row.uuid(9)};
    }
    if (!row.is_null(10)) {
        asset.crc32 = static_cast<std::uint32_t>(row.integer(10));
    }
    if (!row.is_null(11)) {
        asset.store = row.text(11);
    }
    if (!row.is_null(12)) {
        asset.retention = static_cast<assets::RetentionClass>(row.integer(12));
    }
    asset.moves_at = row.optional_time(13);
    return asset;
}

}  // namespace comfyd::ledger::postgres
