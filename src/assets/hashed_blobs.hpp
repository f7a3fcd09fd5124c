// Blobs of a folder of this machine, named by the hash of their content alone. What blob_store.hpp
// says takes its place.
//
// A blob that was handed out lately is young: somebody may be about to make a record over it, so it
// stays even if none refers to it yet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "assets/blob_store.hpp"
#include "base/task.hpp"
#include "base/time.hpp"

namespace comfyd {
class Pool;
}

namespace comfyd::assets {

class Incoming;

struct Blob {
    std::string hash;  // "blake3:<64 hex digits>"
    std::uint64_t size_bytes = 0;
    bool is_new = false;
};

// Members may be awaited on any executor, any number at once.
class HashedBlobs {
public:
    virtual ~HashedBlobs() = default;

    // Makes ready what it needs. Blocks; before everything else.
    virtual Result<> open() = 0;

    // Durable when this returns. Equal bytes that are there already are kept, and are young again.
    // `content` lives until then. Code::storage_full, Code::storage_unavailable.
    virtual Task<Result<Blob>> put(Incoming& content) = 0;
    // Where clients get the bytes: a file of this machine, or from elsewhere.
    struct Place {
        std::variant<std::filesystem::path, Redirect> where;
        std::uint64_t size_bytes = 0;
    };
    // Nullopt when there is no such blob.
    virtual Task<Result<std::optional<Place>>> find(std::string hash) = 0;
    // All of it. Code::not_found, Code::payload_too_large.
    virtual Task<Result<std::string>> read(std::string hash, std::uint64_t bytes_max) = 0;
    // Makes an existing blob young. False when there is none.
    virtual Task<Result<bool>> keep(std::string hash) = 0;
    enum class Removal { removed, too_young, absent };
    virtual Task<Result<Removal>> remove_unless_young(std::string hash) = 0;
    // Those that are not young among the blobs whose hashes begin with this byte.
    virtual Task<Result<std::vector<std::string>>> old_ones(std::uint8_t first_byte) = 0;
};

struct HashedBlobsOptions {
    std::filesystem::path directory;  // made when absent
    // For how long a blob is young.
    Millis young = std::chrono::hours(1);
};

// The store that the options name. `clock` and `pool` outlive it.
std::unique_ptr<HashedBlobs> make_hashed_blobs(
    HashedBlobsOptions options, Clock& clock, Pool& pool
);

}  // namespace comfyd::assets
