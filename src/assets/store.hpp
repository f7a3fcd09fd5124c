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

#include "assets/hashed_blobs.hpp"
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
    std::optional<JobId> job;  // that made it
    // Of a small output until its record is written, which keeps them.
    std::shared_ptr<const std::string> bytes{};
};

// Durable asset records. Implemented by the ledger room.
class Catalogue {
public:
    virtual ~Catalogue() = default;
    virtual Task<Result<>> add(Asset asset) = 0;
    virtual Task<Result<std::optional<Asset>>> find(AssetId id) = 0;
    // Any asset of the tenant over this blob.
    virtual Task<Result<std::optional<Asset>>> find_by_hash(
        std::string tenant, std::string hash
    ) = 0;
    // False when there was none. Code::asset_in_use while a job that has not ended made it, or
    // takes it, or a named workflow does.
    virtual Task<Result<bool>> remove(AssetId id) = 0;
    // True while any record refers to the blob.
    virtual Task<Result<bool>> is_referenced(std::string hash) = 0;
    // Bytes that are kept with a record; nullopt: of none with this hash.
    virtual Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) = 0;
    // Records whose expires_at has passed, that are no job's output and not in use.
    virtual Task<Result<std::vector<Asset>>> expired(Time now, int limit) = 0;
    // Blobs that may have lost their last record otherwise than by remove(): with the job that made
    // them. Told once, and not after a restart. Any thread.
    virtual std::vector<std::string> take_loose() = 0;
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
    // How long a blob without a record stays: somebody may be about to make one.
    Millis young = std::chrono::hours(1);
    bool is_shared = false;  // the directory, with other processes
};

// A file, the bytes themselves, or where else they are to be had.
using Content = std::variant<std::filesystem::path, std::string, Redirect>;

class Store {
public:
    // Over the blob store that the options name.
    Store(const StoreOptions& options, Catalogue& catalogue, Clock& clock, Pool& pool);
    Store(
        const StoreOptions& options,
        std::unique_ptr<HashedBlobs> blobs,
        Catalogue& catalogue,
        Clock& clock,
        Pool& pool
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
    // Code::output_unavailable when the bytes are gone.
    Task<Result<Content>> content(Asset asset);
    Task<Result<std::string>> read(Asset asset, std::uint64_t bytes_max);
    // Removes expired records and blobs that nothing refers to any more.
    Task<Result<int>> sweep();

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::assets
