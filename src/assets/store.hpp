// Content-addressed files: inputs that clients upload and outputs that workers make.
//
// A blob is content named by its BLAKE3 hash, in a HashedBlobs; an asset is a record with an id, an
// owner and a name that refers to a blob. Equal bytes are stored once. Small outputs are no blobs:
// their bytes are kept with their record, which saves a job two waits for the disk. Blocking work
// runs on the pool; members may be awaited on any executor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "assets/blob_records.hpp"
#include "assets/blob_stores.hpp"
#include "assets/retention_class.hpp"
#include "base/error.hpp"
#include "base/id.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd::assets {

struct Asset {
    AssetId id;
    std::string tenant;
    std::string hash;  // "blake3:<64 hex digits>"
    std::uint64_t size_bytes = 0;
    std::string content_type;
    std::string file_path;  // name that the owner gave it; may be empty
    std::vector<std::string> tags;
    Time created_at{};
    std::optional<Time> expires_at;
    std::optional<JobId> job;                      // that made it
    std::optional<std::uint32_t> crc32{};          // nullopt: never computed (Store::crc32)
    std::string store = std::string(kLocalStore);  // where its bytes are, or are to be
    std::optional<RetentionClass> retention{};
    std::optional<Time> moves_at{};  // to a cheaper class of storage
    // Of a small output until its record is written, which keeps them.
    std::shared_ptr<const std::string> bytes{};
    // Under which its bytes have just come in, until its record is written; 0: they were there.
    std::uint64_t generation = 0;
};

// Durable asset records. Implemented by the ledger room.
class Catalogue : public BlobRecords {
public:
    // Together with the record of its bytes, where it needs one.
    virtual Task<Result<>> add(Asset asset) = 0;
    virtual Task<Result<std::optional<Asset>>> find(AssetId id) = 0;
    // Any asset of the tenant over this blob.
    virtual Task<Result<std::optional<Asset>>> find_by_hash(
        std::string tenant, std::string hash
    ) = 0;
    // False when there was none. Code::asset_in_use while a job that has not ended made it, or
    // takes it, or a named workflow does.
    virtual Task<Result<bool>> remove(AssetId id) = 0;
    // Bytes that are kept with a record; nullopt: of none with this hash.
    virtual Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) = 0;
    virtual Task<Result<>> set_crc32(AssetId id, std::uint32_t crc32) = 0;
    // Records whose expires_at has passed and that are not in use, the oldest first, behind
    // `after`.
    virtual Task<Result<std::vector<Asset>>> expired(
        Time now, std::optional<Asset> after, int limit
    ) = 0;
    // Likewise those whose moves_at has passed.
    virtual Task<Result<std::vector<Asset>>> moving(
        Time now, std::optional<Asset> after, int limit
    ) = 0;
    virtual Task<Result<>> moved(AssetId id, std::optional<Time> moves_at) = 0;
    // Those of all tenants over this content in this store.
    virtual Task<Result<std::vector<Asset>>> sharing(
        std::string hash, std::string store, int limit
    ) = 0;
    // Of all its assets together, each with all its bytes.
    virtual Task<Result<std::uint64_t>> stored_bytes(std::string tenant) = 0;
};

// Receives the bytes of a new blob. Not thread-safe; on destruction without finish() the bytes are
// dropped.
class BlobWriter {
public:
    virtual ~BlobWriter() = default;
    // Code::payload_too_large above the store's limit, Code::storage_full,
    // Code::storage_unavailable.
    virtual Result<> append(std::string_view piece) = 0;
};

struct NewAsset {
    std::string tenant;
    std::string content_type;  // empty: guessed from file_path and the first bytes
    std::string file_path;
    std::vector<std::string> tags;
    std::optional<Time> expires_at;
    // An output: its record is written by jobs::Ledger::commit() together with the end of the job,
    // not here.
    std::optional<JobId> job;
    std::string expected_hash;  // empty: none. Code::hash_mismatch when the bytes have another
    // Of the request; empty: none. The same key and bytes give the same asset again, for as long
    // as that exists. Code::idempotency_key_reuse for other bytes.
    std::string idempotency_key;
};

struct StoreOptions {
    std::filesystem::path directory;  // made when absent
    std::uint64_t blob_bytes_max = 8ULL * 1024 * 1024 * 1024;
    std::uint64_t kept_bytes_max = 32ULL * 1024;  // of an output that is kept with its record
    // How long a blob without a record stays: somebody may be about to make one. And how long one
    // that was given up stays: somebody may be reading it.
    Millis young = std::chrono::hours(1);
    bool is_shared = false;  // the directory, with other processes
    RetentionRules retention{};
    // Asked before a file of a tenant is recorded that is no output; none: all may come in.
    std::function<Task<Result<>>(std::string tenant, std::uint64_t bytes)> may_store{};
};

// A file, the bytes themselves, where else they are to be had, or that they are to be read part by
// part or are on their way back.
using Content = std::variant<std::filesystem::path, std::string, Redirect, Streamed, Restoring>;

class Store {
public:
    // `others`: the stores beside the folder of the options.
    Store(
        const StoreOptions& options,
        Catalogue& catalogue,
        Clock& clock,
        Pool& pool,
        BlobStores others = {}
    );
    ~Store();

    // Makes the folders and removes what an earlier crash left unfinished.
    Result<> open();

    Result<std::unique_ptr<BlobWriter>> write();
    // As the writer's own append(), but for a caller that waits for no disk: what does not fit in
    // memory is hashed and written on the pool. `writer` is one of write().
    Task<Result<>> append(BlobWriter& writer, std::string bytes);
    struct Added {
        Asset asset;
        bool created_new = false;  // the bytes were not there before
        bool replayed = false;     // by its key; nothing was added
    };
    Task<Result<Added>> finish(std::unique_ptr<BlobWriter> writer, NewAsset asset);
    Task<Result<Added>> add(std::string bytes, NewAsset asset);
    // A new record over bytes that this tenant already has. Code::blob_not_found.
    Task<Result<Asset>> from_hash(std::string hash, NewAsset asset);

    // Code::not_found for an unknown id, an expired one and another tenant's. Without a tenant
    // anybody's: for those who hold a signed link.
    Task<Result<Asset>> get(std::optional<std::string> tenant, AssetId id);
    // One of the tenant's assets over these bytes; nullopt: there is none, or the bytes are gone.
    Task<Result<std::optional<Asset>>> find_hash(std::string tenant, std::string hash);
    Task<Result<bool>> has_hash(std::string tenant, std::string hash);
    // Code::not_found, Code::asset_in_use.
    Task<Result<>> remove(std::string tenant, AssetId id);
    // Code::output_unavailable when the bytes are gone. `terms`: of an address elsewhere.
    Task<Result<Content>> content(Asset asset, LinkTerms terms = {});
    // All of it, wherever it is. Code::payload_too_large.
    Task<Result<std::string>> read(Asset asset, std::uint64_t bytes_max);
    // A part of it, at most kPartBytes; empty behind its end. For what is Streamed.
    Task<Result<std::string>> read_part(Asset asset, std::uint64_t first);
    static constexpr std::uint64_t kPartBytes = 1024 * 1024;
    // Computed and kept when it is not known yet.
    Task<Result<std::uint32_t>> crc32(Asset asset);
    // Whether its bytes are where they are to be, or wait for that here.
    Task<Result<bool>> is_pending(Asset asset);

    // Removes expired records and blobs that nothing refers to any more, and moves what is due to
    // cheaper storage. How many were removed.
    Task<Result<int>> sweep();
    // Brings what waits to its store; how many could be brought there.
    Task<Result<int>> upload();
    // What sweep() would do to records by then, a page behind `after`.
    struct Due {
        Asset asset;
        bool expires = false;  // else it moves
        StorageClass to = StorageClass::standard;
    };
    Task<Result<std::vector<Due>>> due(
        Time by, bool expiring, std::optional<Asset> after, int limit
    );

    // Brings all that lies in one store to another, with the assets over it. What was done before
    // is not done again. Bytes are checked against their hash first: damaged ones stay where they
    // are.
    struct Copied {
        std::uint64_t contents = 0;
        std::uint64_t bytes = 0;
        std::uint64_t damaged = 0;
    };
    Task<Result<Copied>> copy(
        std::string from, std::string to, std::function<void(const Copied&)> tell
    );

    const BlobStores& stores() const;
    Task<Result<BlobRecords::Waiting>> waiting();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::assets
