// Internal to assets: what the files of the store share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "assets/hashed_blobs.hpp"
#include "assets/incoming.hpp"
#include "assets/store.hpp"
#include "assets/sweeper.hpp"

namespace comfyd::assets {

class Store::Impl {
public:
    Impl(
        const StoreOptions& options,
        std::unique_ptr<HashedBlobs> blobs,
        Catalogue& catalogue,
        Clock& clock,
        Pool& pool
    )
        : catalogue_(catalogue),
          clock_(clock),
          pool_(pool),
          kept_bytes_max_(options.kept_bytes_max),
          directory_(options.directory),
          inbox_(options.directory / "incoming", options.blob_bytes_max, clock, options.is_shared),
          blobs_(std::move(blobs)),
          sweeper_(*blobs_, catalogue, clock) {}

    Result<> open();
    Inbox& inbox() { return inbox_; }
    HashedBlobs& blobs() { return *blobs_; }
    Pool& pool() { return pool_; }
    Catalogue& catalogue() { return catalogue_; }
    Sweeper& sweeper() { return sweeper_; }
    Time now() const { return clock_.now(); }

    Task<Result<Added>> publish(std::unique_ptr<Incoming> incoming, NewAsset asset);
    // Whether an output of this size may be kept with its record.
    bool is_small(std::uint64_t size) const { return size <= kept_bytes_max_; }
    // Nullopt: there is no blob, and no record that keeps the bytes.
    Task<Result<std::optional<Content>>> find_content(Asset asset);
    struct Recorded {
        Asset asset;
        bool replayed = false;
    };
    // `bytes`: of a small content that is to be kept with the record, if it is not yet.
    Task<Result<Recorded>> record(
        NewAsset asset, Blob blob, std::shared_ptr<const std::string> bytes = nullptr
    );

private:
    // What an earlier request with the same key made of these bytes; nullopt: nothing that is
    // still there.
    Task<Result<std::optional<Asset>>> find_earlier(AssetId id, std::string hash);
    Task<Result<Recorded>> add(Asset made, bool has_key);
    Task<Result<Blob>> put(Incoming& incoming, std::string expected_hash);
    Task<Result<Added>> keep(Incoming& incoming, NewAsset asset);

    Catalogue& catalogue_;
    Clock& clock_;
    Pool& pool_;
    std::uint64_t kept_bytes_max_;
    const std::filesystem::path directory_;
    Inbox inbox_;
    std::unique_ptr<HashedBlobs> blobs_;
    Sweeper sweeper_;
};

}  // namespace comfyd::assets
