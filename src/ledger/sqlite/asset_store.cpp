#include "ledger/sqlite/asset_store.hpp"

#include <algorithm>
#include <utility>

#include "ledger/codec.hpp"
#include "ledger/sqlite/asset_uses.hpp"
#include "ledger/sqlite/blob_records.hpp"

namespace comfyd::ledger::sqlite {
namespace {

#define COMFYD_ASSET_COLUMNS                                                                     \
    "id, tenant, hash, size_bytes, content_type, file_path, tags, created_at, expires_at, job, " \
    "crc32, store, retention, moves_at"

constexpr char kInsert[] = "INSERT INTO assets (" COMFYD_ASSET_COLUMNS
                           ", content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
// An output may be recorded already when the end of a job is committed again.
constexpr char kInsertOutput[] = "INSERT OR IGNORE INTO assets (" COMFYD_ASSET_COLUMNS
                                 ", content) VALUES (?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr char kFind[] = "SELECT " COMFYD_ASSET_COLUMNS " FROM assets WHERE id = ?";
constexpr char kFindByHash[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets WHERE hash = ? AND tenant = ? ORDER BY id DESC LIMIT 1";
constexpr char kIsKnown[] = "SELECT EXISTS (SELECT 1 FROM assets WHERE hash = ?)";
constexpr char kExpired[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets INDEXED BY assets_expiring WHERE expires_at IS NOT NULL AND "
    "expires_at <= ?1 AND (expires_at, id) > (?2, ?3) AND NOT EXISTS "
    "(SELECT 1 FROM asset_uses u WHERE u.asset IN (assets.hash, assets.id)) "
    "ORDER BY expires_at, id LIMIT ?4";
constexpr char kMoving[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets INDEXED BY assets_moving WHERE moves_at IS NOT NULL AND moves_at <= ?1 AND "
    "(moves_at, id) > (?2, ?3) ORDER BY moves_at, id LIMIT ?4";
constexpr char kSharing[] =
    "SELECT " COMFYD_ASSET_COLUMNS
    " FROM assets WHERE hash = ?1 AND coalesce(store, 'local') = ?2 LIMIT ?3";
constexpr char kSumBytes[] = "SELECT coalesce(sum(size_bytes), 0) FROM assets WHERE tenant = ?1";
constexpr char kSetCrc32[] = "UPDATE assets SET crc32 = ?2 WHERE id = ?1";
constexpr char kSetMoves[] = "UPDATE assets SET moves_at = ?2 WHERE id = ?1";
constexpr char kFindHeld[] =
    "SELECT hash, EXISTS (SELECT 1 FROM jobs WHERE jobs.id = assets.job AND state < 3) "
    "FROM assets WHERE assets.id = ?";
constexpr char kRemove[] = "DELETE FROM assets WHERE id = ?";
constexpr char kFindContent[] =
    "SELECT content FROM assets WHERE hash = ? AND content IS NOT NULL LIMIT 1";
constexpr char kAddContent[] = "INSERT INTO contents (bytes) VALUES (?) RETURNING id";
constexpr char kReadContent[] =
    "SELECT bytes FROM contents WHERE id = "
    "(SELECT content FROM assets WHERE hash = ? AND content IS NOT NULL LIMIT 1)";
constexpr char kContentOf[] = "SELECT content, hash FROM assets WHERE id = ?";
constexpr char kRemoveContent[] =
    "DELETE FROM contents WHERE id = ?1 AND "
    "NOT EXISTS (SELECT 1 FROM assets WHERE hash = ?2 AND content = ?1)";

// As stored: nothing where it is the usual.
std::optional<std::string> stored_name(const std::string& store) {
    return store.empty() || store == assets::kLocalStore ? std::nullopt : std::optional(store);
}
template <class Retention>
std::optional<int> stored_number(const std::optional<Retention>& retention) {
    return retention ? std::optional(static_cast<int>(*retention)) : std::nullopt;
}

Result<assets::Asset> read_asset(const Query& row) {
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

// Where the bytes with this hash are kept. `bytes`: put there when they are not; nullptr: then they
// are a file.
Result<std::optional<std::int64_t>> content_of(
    Session& session, const std::string& hash, const std::string* bytes
) {
    {
        Query query(session.db, kFindContent);
        const auto row = query.bind(hash).next();
        if (!row) {
            return fail(row.error());
        }
        if (*row) {
            return query.integer(0);
        }
    }
    if (bytes == nullptr) {
        return std::nullopt;
    }
    Query query(session.db, kAddContent);
    const auto row = query.bind(Bytes{*bytes}).next();
    if (!row) {
        return fail(row.error());
    }
    return query.integer(0);
}

}  // namespace

std::size_t AddAsset::bytes() const {
    std::size_t total = 256 + asset.file_path.size() + asset.content_type.size();
    for (const std::string& tag : asset.tags) {
        total += tag.size();
    }
    return total;
}

Result<> AddAsset::operator()(Session& session) {
    const auto tags = encode(json::array(asset.tags.begin(), asset.tags.end()));
    const auto content = content_of(session, asset.hash, asset.bytes.get());
    if (!content) {
        return fail(content.error());
    }
    auto added = Query(session.db, kInsert)
                     .bind(
                         asset.id,
                         asset.tenant,
                         asset.hash,
                         asset.size_bytes,
                         asset.content_type,
                         asset.file_path,
                         tags,
                         asset.created_at,
                         asset.expires_at,
                         asset.job,
                         asset.crc32,
                         stored_name(asset.store),
                         stored_number(asset.retention),
                         asset.moves_at,
                         *content
                     )
                     .run();
    if (!added) {
        return added;
    }
    return need_blob(
        session, {asset.hash, asset.size_bytes, asset.store, asset.generation, content->has_value()}
    );
}

Result<> add_output(Session& session, const jobs::Job& job, const jobs::Output& output, Time now) {
    const auto content = content_of(session, output.hash, output.bytes.get());
    if (!content) {
        return fail(content.error());
    }
    auto added = Query(session.db, kInsertOutput)
                     .bind(
                         output.asset,
                         job.tenant,
                         output.hash,
                         output.size_bytes,
                         output.content_type,
                         output.name,
                         now,
                         output.expires_at,
                         std::optional(job.id),
                         output.crc32,
                         stored_name(output.store),
                         stored_number(assets::parse_retention_class(output.retention)),
                         output.moves_at,
                         *content
                     )
                     .run();
    if (!added) {
        return added;
    }
    return need_blob(
        session,
        {output.hash, output.size_bytes, output.store, output.generation, content->has_value()}
    );
}

Result<bool> remove_record(Session& session, const AssetId& id) {
    std::optional<std::int64_t> content;
    std::string hash;
    {
        Query query(session.db, kContentOf);
        const auto row = query.bind(id).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return false;
        }
        content = query.is_null(0) ? std::nullopt : std::optional(query.integer(0));
        hash = query.text(1);
    }
    if (auto removed = Query(session.db, kRemove).bind(id).run(); !removed) {
        return fail(std::move(removed.error()));
    }
    if (content) {
        if (auto gone = Query(session.db, kRemoveContent).bind(*content, hash).run(); !gone) {
            return fail(std::move(gone.error()));
        }
    }
    if (auto looked = look_at_blobs(session, hash); !looked) {
        return fail(std::move(looked.error()));
    }
    return true;
}

Result<bool> RemoveAsset::operator()(Session& session) {
    std::string hash;
    bool is_held = false;
    {
        Query query(session.db, kFindHeld);
        const auto row = query.bind(id).next();
        if (!row) {
            return fail(row.error());
        }
        if (!*row) {
            return false;
        }
        hash = query.text(0);
        is_held = query.integer(1) != 0;
    }
    const auto used = is_used(session.db, id, hash);
    if (!used) {
        return fail(used.error());
    }
    if (is_held || *used) {
        return fail(
            Code::asset_in_use,
            "asset " + id.to_string() +
                " belongs to a job that has not ended, or a named workflow takes it"
        );
    }
    return remove_record(session, id);
}

Result<> SetCrc32::operator()(Session& session) {
    return Query(session.db, kSetCrc32).bind(id, crc32).run();
}

Result<> SetMoves::operator()(Session& session) {
    return Query(session.db, kSetMoves).bind(id, moves_at).run();
}

Result<std::optional<assets::Asset>> find_asset(Database& db, const AssetId& id) {
    Query query(db, kFind);
    query.bind(id);
    return first_row(query, read_asset);
}

Result<std::optional<assets::Asset>> find_asset_by_hash(
    Database& db, const std::string& tenant, const std::string& hash
) {
    Query query(db, kFindByHash);
    query.bind(hash, tenant);
    return first_row(query, read_asset);
}

Result<bool> is_content_known(Database& db, const std::string& hash) {
    Query query(db, kIsKnown);
    const auto row = query.bind(hash).next();
    if (!row) {
        return fail(row.error());
    }
    return query.integer(0) != 0;
}

Result<std::optional<std::string>> find_kept_bytes(Database& db, const std::string& hash) {
    Query query(db, kReadContent);
    const auto row = query.bind(hash).next();
    if (!row) {
        return fail(row.error());
    }
    return *row ? std::optional(std::string(query.bytes(0))) : std::nullopt;
}

Result<std::vector<assets::Asset>> find_expired_assets(
    Database& db, Time now, const std::optional<assets::Asset>& after, int limit
) {
    const auto from = after ? after->expires_at.value_or(Time()) : Time(Millis(-1));
    const AssetId id = after ? after->id : AssetId{};
    Query query(db, kExpired);
    query.bind(now, from, id, std::clamp(limit, 1, kExpiredLimitMax));
    return all_rows(query, read_asset);
}

Result<std::vector<assets::Asset>> find_moving_assets(
    Database& db, Time now, const std::optional<assets::Asset>& after, int limit
) {
    const auto from = after ? after->moves_at.value_or(Time()) : Time(Millis(-1));
    const AssetId id = after ? after->id : AssetId{};
    Query query(db, kMoving);
    query.bind(now, from, id, std::clamp(limit, 1, kExpiredLimitMax));
    return all_rows(query, read_asset);
}

Result<std::vector<assets::Asset>> find_sharing_assets(
    Database& db, const std::string& hash, const std::string& store, int limit
) {
    Query query(db, kSharing);
    query.bind(hash, store, std::clamp(limit, 1, kExpiredLimitMax));
    return all_rows(query, read_asset);
}

Result<std::uint64_t> sum_asset_bytes(Database& db, const std::string& tenant) {
    Query query(db, kSumBytes);
    query.bind(tenant);
    const auto row = query.next();
    if (!row) {
        return fail(row.error());
    }
    return static_cast<std::uint64_t>(*row ? query.integer(0) : 0);
}

}  // namespace comfyd::ledger::sqlite
