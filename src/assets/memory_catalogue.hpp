// Records in memory with the promises of assets::Catalogue, and a store that is elsewhere: for
// tests and simulations. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "assets/store.hpp"

namespace comfyd::assets::test {

// Blobs as in a bucket: no files of this machine; clients are sent to them.
class Bucket final : public BlobStore {
public:
    struct Content {
        std::mutex mutex;
        std::map<std::string, std::string> blobs;  // by key
        std::map<std::string, int> puts;           // how often each was put
        std::map<std::string, StorageClass> classes;
        bool is_away = false;
        bool is_silent = false;    // a put never ends by itself
        int begun = 0;             // of those
        bool is_streamed = false;  // clients are not sent there
        bool is_restoring = false;
    };
    explicit Bucket(std::shared_ptr<Content> content) : content_(std::move(content)) {}

    Result<> open() override { return {}; }
    Task<Result<std::string>> put(std::string key, Source source) override;
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) override;
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length)
        override;
    Task<Result<>> remove(std::string key) override;
    Task<Result<>> change_class(std::string key, StorageClass to) override;
    Task<Result<Page>> list(std::string after) override;
    Task<Result<>> remove_unfinished(Time before) override;

private:
    std::shared_ptr<Content> content_;  // shared with the test
};

class MemoryCatalogue final : public Catalogue {
public:
    std::atomic<bool> is_broken{false};

    Task<Result<>> add(Asset asset) override;
    Task<Result<std::optional<Asset>>> find(AssetId id) override;
    Task<Result<std::optional<Asset>>> find_by_hash(std::string tenant, std::string hash) override;
    Task<Result<bool>> remove(AssetId id) override;
    Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) override;
    Task<Result<>> set_crc32(AssetId id, std::uint32_t crc32) override;
    Task<Result<std::vector<Asset>>> expired(Time now, std::optional<Asset> after, int limit)
        override;
    Task<Result<std::vector<Asset>>> moving(Time now, std::optional<Asset> after, int limit)
        override;
    Task<Result<>> moved(AssetId id, std::optional<Time> moves_at) override;
    Task<Result<std::vector<Asset>>> sharing(std::string hash, std::string store, int limit)
        override;
    Task<Result<std::uint64_t>> stored_bytes(std::string tenant) override;

    Task<Result<std::vector<BlobRecord>>> blobs_of(std::string hash) override;
    Task<Result<bool>> hold(std::string hash, std::string store, Time until) override;
    Task<Result<int>> doom(Time now, Time goes_at, int limit) override;
    Task<Result<int>> take_out(Time now, Time again, int limit) override;
    Task<Result<std::vector<BlobRemoval>>> removals(Time now, int limit) override;
    Task<Result<>> removed(BlobRemoval removal) override;
    Task<Result<>> remove_later(BlobRemoval removal, Time at, std::string error) override;
    Task<Result<int>> enter_leftovers(std::vector<BlobRecord> found, Time goes_at) override;
    Task<Result<std::vector<Upload>>> uploads(Time now, int limit) override;
    Task<Result<>> begin_upload(BlobRecord record, Time at) override;
    Task<Result<>> uploaded(BlobRecord record, std::string instead_of, Time now) override;
    Task<Result<>> upload_later(BlobRecord record, Time at, std::string error) override;
    Task<Result<>> note_upload(BlobRecord record, std::string note) override;
    Task<Result<>> give_up(BlobRecord record, Time goes_at) override;
    Task<Result<>> set_storage_class(BlobRecord record) override;
    Task<Result<std::vector<BlobRecord>>> blobs_in(
        std::string store, std::optional<BlobRecord> after, int limit
    ) override;
    Task<Result<Waiting>> waiting() override;

    // As the ledger does with the job that made it.
    void drop(const Asset& asset);

private:
    using Key = std::tuple<std::string, std::string, std::uint64_t>;  // hash, store, generation
    struct Entry {
        BlobRecord record;
        std::optional<Time> due_at{};
    };
    struct Removal {
        BlobRemoval removal;
        Time due_at{};
    };

    static Key key_of(const BlobRecord& record);
    bool has_any(const std::string& hash, const std::string& store) const;
    bool is_needed(const BlobRecord& record) const;
    void enter(BlobRecord record, std::optional<Time> due_at);
    void need(const Asset& asset);
    void look_at(const std::string& hash, Time now);
    std::vector<Entry*> due(BlobState state, Time now, int limit);
    void start_removal(const std::string& store, const std::string& key);

    std::mutex mutex_;
    std::map<AssetId, Asset> assets_;
    std::map<Key, Entry> blobs_;
    std::map<std::pair<std::string, std::string>, Removal> removals_;
};

}  // namespace comfyd::assets::test
