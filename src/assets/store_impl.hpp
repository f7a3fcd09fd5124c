// Internal to assets: what the files of the store share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "assets/blob_stores.hpp"
#include "assets/incoming.hpp"
#include "assets/store.hpp"
#include "assets/sweeper.hpp"
#include "assets/uploader.hpp"

namespace comfyd::assets {

class Store::Impl {
public:
    Impl(
        const StoreOptions& options,
        Catalogue& catalogue,
        Clock& clock,
        Pool& pool,
        BlobStores others
    );

    Result<> open();
    Inbox& inbox() { return inbox_; }
    const BlobStores& stores() const { return stores_; }
    Pool& pool() { return pool_; }
    Catalogue& catalogue() { return catalogue_; }
    Sweeper& sweeper() { return sweeper_; }
    Uploader& uploader() { return uploader_; }
    const RetentionRules& retention() const { return options_.retention; }
    Time now() const { return clock_.now(); }

    Task<Result<Added>> publish(std::unique_ptr<Incoming> incoming, NewAsset asset);
    // Whether an output of this size may be kept with its record.
    bool is_small(std::uint64_t size) const { return size <= options_.kept_bytes_max; }
    // Where the bytes of an asset are best read: in its store, or here; nullopt: nowhere.
    Task<Result<std::optional<BlobRecord>>> find_blob(const Asset& asset);
    // Nullopt: there is no blob, and no record that keeps the bytes.
    Task<Result<std::optional<Content>>> find_content(Asset asset, LinkTerms terms);
    // Keeps a live blob of the content for as long as a new record of it may take. Nullopt: there
    // is none.
    Task<Result<std::optional<std::string>>> hold(std::string hash, std::string store);

    struct Recorded {
        Asset asset;
        bool replayed = false;
    };
    struct Bytes {
        std::string hash;
        std::uint64_t size_bytes = 0;
        std::optional<std::uint32_t> crc32{};
        std::uint64_t generation = 0;  // of those that have just come in; 0: they were there
        std::string store = std::string(kLocalStore);
        std::shared_ptr<const std::string> kept{};  // with the record, if they are not yet
    };
    Task<Result<Recorded>> record(NewAsset asset, Bytes bytes);
    // False: it was there.
    Task<Result<bool>> copy_one(BlobRecord from, std::string to);

private:
    Task<Result<bool>> is_whole(BlobRecord blob);
    // What an earlier request with the same key made of these bytes; nullopt: nothing that is
    // still there.
    Task<Result<std::optional<Asset>>> find_earlier(AssetId id, std::string hash);
    Task<Result<Recorded>> add(Asset made, bool has_key);
    Task<Result<Bytes>> put(Incoming& incoming, std::string expected_hash);
    Task<Result<Added>> keep(Incoming& incoming, NewAsset asset);

    const StoreOptions options_;
    Catalogue& catalogue_;
    Clock& clock_;
    Pool& pool_;
    Inbox inbox_;
    BlobStores stores_;
    Sweeper sweeper_;
    Uploader uploader_;
};

}  // namespace comfyd::assets
