// The assets table: records over blobs that the assets room keeps, and over small outputs, whose
// bytes are in the contents table: once for all records with the same hash.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assets/store.hpp"
#include "ledger/postgres/batch.hpp"
#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {

inline constexpr int kExpiredLimitMax = 10'000;

// Of an asset `a`: an unfinished job or bulk, or a named workflow takes it.
#define COMFYD_ASSET_IS_USED                                                                      \
    "(EXISTS (SELECT 1 FROM job_assets u JOIN jobs t ON t.id = u.job WHERE u.asset = a.hash AND " \
    "t.outcome IS NULL) OR EXISTS (SELECT 1 FROM job_assets u JOIN jobs t ON t.id = u.job "       \
    "WHERE u.asset = a.id::text AND t.outcome IS NULL) OR EXISTS (SELECT 1 FROM workflow_assets " \
    "u WHERE u.asset = a.hash) OR EXISTS (SELECT 1 FROM workflow_assets u WHERE u.asset = "       \
    "a.id::text) OR EXISTS (SELECT 1 FROM bulk_assets u WHERE u.asset = a.hash) OR EXISTS "       \
    "(SELECT 1 FROM bulk_assets u WHERE u.asset = a.id::text))"

// Code::conflict when the id exists.
class AddAsset final : public WriteOf<void> {
public:
    explicit AddAsset(assets::Asset asset) : asset_(std::move(asset)) {}
    std::size_t bytes() const override;
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;
    Statements question(const Circumstances& at) override;
    void hear(const Circumstances& at, const std::vector<Rows>& answers) override;

private:
    assets::Asset asset_;
    std::size_t place_ = 0;
};

// Code::asset_in_use: see assets::Catalogue.
class RemoveAsset final : public ProcedureOf<bool> {
public:
    explicit RemoveAsset(AssetId id) : id_(id) {}
    Task<Done> run(Transaction& transaction) override;

private:
    AssetId id_;
};

// Assets with these hashes were removed: so are bytes that no record refers to any more, and their
// blobs are looked at. In steps, so that the second sees the records of those who held them before.
Statements drop_contents(const Array& hashes, Time now);

// As stored: nothing where it is the usual.
std::optional<std::string> stored_store(const std::string& store);
std::optional<int> stored_retention(const std::optional<assets::RetentionClass>& retention);

Statement find_asset(const AssetId& id);
Statement find_asset_by_hash(const std::string& tenant, const std::string& hash);
Statement find_expired_assets(Time now, const std::optional<assets::Asset>& after, int limit);
Statement find_moving_assets(Time now, const std::optional<assets::Asset>& after, int limit);
Statement find_sharing_assets(const std::string& hash, const std::string& store, int limit);
Statement sum_asset_bytes(const std::string& tenant);
Statement set_asset_crc32(const AssetId& id, std::uint32_t crc32);
Statement set_asset_moves(const AssetId& id, std::optional<Time> moves_at);
Result<assets::Asset> read_asset(const Row& row);
Statement find_kept_bytes(const std::string& hash);

}  // namespace comfyd::ledger::postgres
