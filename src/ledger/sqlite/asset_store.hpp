// The assets table: records over blobs that the assets room keeps, and over small outputs, whose
// bytes are in the contents table: once for all records with the same hash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assets/store.hpp"
#include "jobs/job.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

inline constexpr int kExpiredLimitMax = 10'000;

// Code::conflict when the id exists.
struct AddAsset {
    using Value = void;
    assets::Asset asset;

    std::size_t bytes() const;
    Result<> operator()(Session& session);
};
// The record of an output, as part of the commit that completes its job.
Result<> add_output(Session& session, const jobs::Job& job, const jobs::Output& output, Time now);
// With its bytes, where no other record keeps them. False: there was none.
Result<bool> remove_record(Session& session, const AssetId& id);
struct SetCrc32 {
    using Value = void;
    AssetId id;
    std::uint32_t crc32;

    std::size_t bytes() const { return 64; }
    Result<> operator()(Session& session);
};
struct SetMoves {
    using Value = void;
    AssetId id;
    std::optional<Time> moves_at;

    std::size_t bytes() const { return 64; }
    Result<> operator()(Session& session);
};
// Code::asset_in_use: see assets::Catalogue.
struct RemoveAsset {
    using Value = bool;
    AssetId id;

    std::size_t bytes() const { return 64; }
    Result<bool> operator()(Session& session);
};

Result<std::optional<assets::Asset>> find_asset(Database& db, const AssetId& id);
Result<std::optional<assets::Asset>> find_asset_by_hash(
    Database& db, const std::string& tenant, const std::string& hash
);
Result<bool> is_content_known(Database& db, const std::string& hash);
Result<std::optional<std::string>> find_kept_bytes(Database& db, const std::string& hash);
Result<std::vector<assets::Asset>> find_expired_assets(
    Database& db, Time now, const std::optional<assets::Asset>& after, int limit
);
Result<std::vector<assets::Asset>> find_moving_assets(
    Database& db, Time now, const std::optional<assets::Asset>& after, int limit
);
Result<std::vector<assets::Asset>> find_sharing_assets(
    Database& db, const std::string& hash, const std::string& store, int limit
);
Result<std::uint64_t> sum_asset_bytes(Database& db, const std::string& tenant);

}  // namespace comfyd::ledger::sqlite
