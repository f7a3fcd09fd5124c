#include "assets/memory_catalogue.hpp"

#include <algorithm>

#include "assets/blob_key.hpp"
#include "base/disk.hpp"

namespace comfyd::assets::test {
namespace {

Error away() {
    return Error(Code::storage_unavailable, "the bucket is away");
}

Error broken() {
    return Error(Code::storage_unavailable, "the catalogue is broken");
}

}  // namespace

Task<Result<std::string>> Bucket::put(std::string key, Source source) {
    std::string bytes;
    if (const auto* path = std::get_if<std::filesystem::path>(&source.bytes)) {
        auto read = read_file(*path, source.size_bytes);
        if (!read) {
            co_return fail(std::move(read.error()));
        }
        bytes = std::move(*read);
    } else {
        bytes = *std::get<1>(source.bytes);
    }
    if (content_->is_silent) {
        ++content_->begun;
        co_await sleep_for(Millis::max());
        co_return fail(Code::cancelled, "the upload was cancelled");
    }
    const std::lock_guard lock(content_->mutex);
    if (content_->is_away) {
        co_return fail(away());
    }
    content_->blobs[key] = std::move(bytes);
    content_->puts[key] += 1;
    co_return key;
}

Task<Result<std::optional<Place>>> Bucket::find(std::string key, LinkTerms) {
    const std::lock_guard lock(content_->mutex);
    if (!content_->blobs.contains(key)) {
        co_return std::nullopt;
    }
    if (content_->is_restoring) {
        co_return Place(Restoring());
    }
    if (content_->is_streamed) {
        co_return Place(Streamed());
    }
    co_return Place(Redirect{"https://bucket.example/" + key});
}

Task<Result<std::string>> Bucket::read(std::string key, std::uint64_t first, std::uint64_t length) {
    const std::lock_guard lock(content_->mutex);
    if (content_->is_away) {
        co_return fail(away());
    }
    const auto found = content_->blobs.find(key);
    if (found == content_->blobs.end()) {
        co_return fail(Code::not_found, "it is not in the bucket");
    }
    co_return first < found->second.size() ? found->second.substr(first, length) : std::string();
}

Task<Result<>> Bucket::remove(std::string key) {
    const std::lock_guard lock(content_->mutex);
    if (content_->is_away) {
        co_return fail(away());
    }
    content_->blobs.erase(key);
    co_return Result<>();
}

Task<Result<>> Bucket::change_class(std::string key, StorageClass to) {
    const std::lock_guard lock(content_->mutex);
    if (content_->is_away) {
        co_return fail(away());
    }
    content_->classes[key] = to;
    co_return Result<>();
}

Task<Result<BlobStore::Page>> Bucket::list(std::string) {
    const std::lock_guard lock(content_->mutex);
    if (content_->is_away) {
        co_return fail(away());
    }
    Page page;
    for (const auto& [key, bytes] : content_->blobs) {
        page.blobs.push_back({key, key, bytes.size(), Time()});
    }
    co_return page;
}

Task<Result<>> Bucket::remove_unfinished(Time) {
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::add(Asset asset) {
    if (is_broken) {
        co_return fail(broken());
    }
    const std::lock_guard lock(mutex_);
    Asset& added = assets_[asset.id] = std::move(asset);
    need(added);
    added.generation = 0;
    co_return Result<>();
}

Task<Result<std::optional<Asset>>> MemoryCatalogue::find(AssetId id) {
    const std::lock_guard lock(mutex_);
    const auto found = assets_.find(id);
    co_return found == assets_.end() ? std::nullopt : std::optional<Asset>(found->second);
}

Task<Result<std::optional<Asset>>> MemoryCatalogue::find_by_hash(
    std::string tenant, std::string hash
) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, asset] : assets_) {
        if (asset.tenant == tenant && asset.hash == hash) {
            co_return asset;
        }
    }
    co_return std::nullopt;
}

Task<Result<bool>> MemoryCatalogue::remove(AssetId id) {
    const std::lock_guard lock(mutex_);
    const auto found = assets_.find(id);
    if (found == assets_.end()) {
        co_return false;
    }
    if (found->second.job) {
        co_return fail(Code::asset_in_use, "a job's output");
    }
    const std::string hash = found->second.hash;
    assets_.erase(found);
    look_at(hash, Time());
    co_return true;
}

Task<Result<std::optional<std::string>>> MemoryCatalogue::kept_bytes(std::string hash) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, asset] : assets_) {
        if (asset.hash == hash && asset.bytes) {
            co_return *asset.bytes;
        }
    }
    co_return std::nullopt;
}

Task<Result<>> MemoryCatalogue::set_crc32(AssetId id, std::uint32_t crc32) {
    const std::lock_guard lock(mutex_);
    if (const auto found = assets_.find(id); found != assets_.end()) {
        found->second.crc32 = crc32;
    }
    co_return Result<>();
}

Task<Result<std::vector<Asset>>> MemoryCatalogue::expired(
    Time now, std::optional<Asset> after, int limit
) {
    const std::lock_guard lock(mutex_);
    std::vector<Asset> found;
    for (const auto& [id, asset] : assets_) {
        if (asset.expires_at && *asset.expires_at <= now && !asset.job &&
            (!after || after->id < id) && found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(asset);
        }
    }
    co_return found;
}

Task<Result<std::vector<Asset>>> MemoryCatalogue::moving(
    Time now, std::optional<Asset> after, int limit
) {
    const std::lock_guard lock(mutex_);
    std::vector<Asset> found;
    for (const auto& [id, asset] : assets_) {
        if (asset.moves_at && *asset.moves_at <= now && (!after || after->id < id) &&
            found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(asset);
        }
    }
    co_return found;
}

Task<Result<>> MemoryCatalogue::moved(AssetId id, std::optional<Time> moves_at) {
    const std::lock_guard lock(mutex_);
    if (const auto found = assets_.find(id); found != assets_.end()) {
        found->second.moves_at = moves_at;
    }
    co_return Result<>();
}

Task<Result<std::vector<Asset>>> MemoryCatalogue::sharing(
    std::string hash, std::string store, int limit
) {
    const std::lock_guard lock(mutex_);
    std::vector<Asset> found;
    for (const auto& [id, asset] : assets_) {
        if (asset.hash == hash && asset.store == store &&
            found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(asset);
        }
    }
    co_return found;
}

Task<Result<std::uint64_t>> MemoryCatalogue::stored_bytes(std::string tenant) {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto& [id, asset] : assets_) {
        sum += asset.tenant == tenant ? asset.size_bytes : 0;
    }
    co_return sum;
}

Task<Result<std::vector<BlobRecord>>> MemoryCatalogue::blobs_of(std::string hash) {
    const std::lock_guard lock(mutex_);
    std::vector<BlobRecord> found;
    for (const auto& [key, entry] : blobs_) {
        if (entry.record.hash == hash) {
            found.push_back(entry.record);
        }
    }
    co_return found;
}

Task<Result<bool>> MemoryCatalogue::hold(std::string hash, std::string store, Time until) {
    const std::lock_guard lock(mutex_);
    for (auto& [key, entry] : blobs_) {
        if (entry.record.hash == hash && entry.record.store == store &&
            entry.record.state == BlobState::live) {
            entry.due_at = until;
            co_return true;
        }
    }
    co_return false;
}

Task<Result<int>> MemoryCatalogue::doom(Time now, Time goes_at, int limit) {
    if (is_broken) {
        co_return fail(broken());
    }
    const std::lock_guard lock(mutex_);
    const auto looked = due(BlobState::live, now, limit);
    for (Entry* entry : looked) {
        const bool stays = is_needed(entry->record);
        entry->record.state = stays ? BlobState::live : BlobState::doomed;
        entry->due_at = stays ? std::nullopt : std::optional(goes_at);
    }
    co_return static_cast<int>(looked.size());
}

Task<Result<int>> MemoryCatalogue::take_out(Time now, Time again, int limit) {
    const std::lock_guard lock(mutex_);
    const auto looked = due(BlobState::doomed, now, limit);
    for (Entry* entry : looked) {
        const BlobRecord record = entry->record;
        if (is_needed(record) && !has_any(record.hash, record.store)) {
            BlobRecord next = record;
            next.generation = make_generation(now);
            next.key = make_blob_key(next.hash, next.generation, store_folder(next.store));
            next.state = BlobState::uploading;
            enter(std::move(next), now);
        }
        const bool is_source = std::ranges::any_of(blobs_, [&](const auto& other) {
            return other.second.record.hash == record.hash &&
                   other.second.record.state == BlobState::uploading;
        });
        if (is_source) {
            entry->due_at = again;
        } else {
            blobs_.erase(key_of(record));
            start_removal(record.store, record.key);
        }
    }
    co_return static_cast<int>(looked.size());
}

Task<Result<std::vector<BlobRemoval>>> MemoryCatalogue::removals(Time now, int limit) {
    const std::lock_guard lock(mutex_);
    std::vector<BlobRemoval> found;
    for (const auto& [key, entry] : removals_) {
        if (entry.due_at <= now && found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(entry.removal);
        }
    }
    co_return found;
}

Task<Result<>> MemoryCatalogue::removed(BlobRemoval removal) {
    const std::lock_guard lock(mutex_);
    removals_.erase({removal.store, removal.key});
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::remove_later(BlobRemoval removal, Time at, std::string) {
    const std::lock_guard lock(mutex_);
    if (const auto found = removals_.find({removal.store, removal.key}); found != removals_.end()) {
        found->second.removal.attempts += 1;
        found->second.due_at = at;
    }
    co_return Result<>();
}

Task<Result<int>> MemoryCatalogue::enter_leftovers(std::vector<BlobRecord> found, Time goes_at) {
    const std::lock_guard lock(mutex_);
    int entered = 0;
    for (BlobRecord& record : found) {
        if (!blobs_.contains(key_of(record))) {
            record.state = BlobState::doomed;
            enter(std::move(record), goes_at);
            ++entered;
        }
    }
    co_return entered;
}

Task<Result<std::vector<BlobRecords::Upload>>> MemoryCatalogue::uploads(Time now, int limit) {
    const std::lock_guard lock(mutex_);
    std::vector<Upload> found;
    for (Entry* entry : due(BlobState::uploading, now, limit)) {
        found.push_back({entry->record, is_needed(entry->record)});
    }
    co_return found;
}

Task<Result<>> MemoryCatalogue::begin_upload(BlobRecord record, Time at) {
    const std::lock_guard lock(mutex_);
    if (!has_any(record.hash, record.store)) {
        record.state = BlobState::uploading;
        enter(std::move(record), at);
    }
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::uploaded(BlobRecord record, std::string instead_of, Time now) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key_of(record));
        found != blobs_.end() && found->second.record.state == BlobState::uploading) {
        found->second.record.state = BlobState::live;
        found->second.record.key = record.key;
        found->second.due_at = now;
    }
    for (auto& [id, asset] : assets_) {
        if (asset.hash == record.hash && asset.store == instead_of) {
            asset.store = record.store;
        }
    }
    look_at(record.hash, now);
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::note_upload(BlobRecord record, std::string note) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key_of(record));
        found != blobs_.end() && found->second.record.state == BlobState::uploading) {
        found->second.record.note = std::move(note);
    }
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::upload_later(BlobRecord record, Time at, std::string error) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key_of(record));
        found != blobs_.end() && found->second.record.state == BlobState::uploading) {
        found->second.record.attempts = record.attempts;
        found->second.record.error = std::move(error);
        found->second.due_at = at;
    }
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::give_up(BlobRecord record, Time goes_at) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key_of(record));
        found != blobs_.end() && found->second.record.state != BlobState::doomed) {
        found->second.record.state = BlobState::doomed;
        found->second.due_at = goes_at;
    }
    co_return Result<>();
}

Task<Result<>> MemoryCatalogue::set_storage_class(BlobRecord record) {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key_of(record)); found != blobs_.end()) {
        found->second.record.storage_class = record.storage_class;
    }
    co_return Result<>();
}

Task<Result<std::vector<BlobRecord>>> MemoryCatalogue::blobs_in(
    std::string store, std::optional<BlobRecord> after, int limit
) {
    const std::lock_guard lock(mutex_);
    std::vector<BlobRecord> found;
    for (const auto& [key, entry] : blobs_) {
        const BlobRecord& record = entry.record;
        if ((!after || key > key_of(*after)) && record.state == BlobState::live &&
            store_name(record.store) == store && found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(record);
        }
    }
    co_return found;
}

Task<Result<BlobRecords::Waiting>> MemoryCatalogue::waiting() {
    const std::lock_guard lock(mutex_);
    Waiting waiting;
    waiting.removals = removals_.size();
    for (const auto& [key, entry] : blobs_) {
        if (entry.record.state != BlobState::uploading) {
            continue;
        }
        ++waiting.uploads;
        waiting.upload_bytes += entry.record.size_bytes;
        const Time since = made_at(entry.record.generation);
        waiting.oldest_upload = std::min(waiting.oldest_upload.value_or(since), since);
    }
    co_return waiting;
}

void MemoryCatalogue::drop(const Asset& asset) {
    const std::lock_guard lock(mutex_);
    assets_.erase(asset.id);
    look_at(asset.hash, Time());
}

MemoryCatalogue::Key MemoryCatalogue::key_of(const BlobRecord& record) {
    return {record.hash, record.store, record.generation};
}

bool MemoryCatalogue::has_any(const std::string& hash, const std::string& store) const {
    return std::ranges::any_of(blobs_, [&](const auto& entry) {
        const BlobRecord& record = entry.second.record;
        return record.hash == hash && record.store == store && record.state != BlobState::doomed;
    });
}

bool MemoryCatalogue::is_needed(const BlobRecord& record) const {
    const auto is_there = [&](const std::string& store) {
        return std::ranges::any_of(blobs_, [&](const auto& entry) {
            const BlobRecord& other = entry.second.record;
            return other.hash == record.hash && other.store == store &&
                   other.state == BlobState::live;
        });
    };
    return std::ranges::any_of(assets_, [&](const auto& entry) {
        const Asset& asset = entry.second;
        return asset.hash == record.hash &&
               (asset.store == record.store ||
                (record.store == kLocalStore && !is_there(asset.store)));
    });
}

void MemoryCatalogue::enter(BlobRecord record, std::optional<Time> due_at) {
    const Key key = key_of(record);
    blobs_.try_emplace(key, Entry{std::move(record), due_at});
}

void MemoryCatalogue::need(const Asset& asset) {
    BlobRecord record;
    record.hash = asset.hash;
    record.store = kLocalStore;
    record.generation = asset.generation;
    record.key = make_blob_key(asset.hash, asset.generation);
    record.size_bytes = asset.size_bytes;
    if (asset.generation != 0 && !blobs_.contains(key_of(record))) {
        if (has_any(asset.hash, record.store)) {
            start_removal(record.store, record.key);
        } else {
            enter(record, std::nullopt);
        }
    }
    if ((asset.bytes && asset.store == kLocalStore) || has_any(asset.hash, asset.store)) {
        return;
    }
    record.store = asset.store;
    record.generation = make_generation(asset.created_at);
    record.key = make_blob_key(asset.hash, record.generation, store_folder(asset.store));
    record.state = BlobState::uploading;
    enter(std::move(record), asset.created_at);
}

void MemoryCatalogue::look_at(const std::string& hash, Time now) {
    for (auto& [key, entry] : blobs_) {
        if (entry.record.hash == hash && entry.record.state == BlobState::live && !entry.due_at) {
            entry.due_at = now;
        }
    }
}

std::vector<MemoryCatalogue::Entry*> MemoryCatalogue::due(BlobState state, Time now, int limit) {
    std::vector<Entry*> found;
    for (auto& [key, entry] : blobs_) {
        if (entry.record.state == state && entry.due_at && *entry.due_at <= now &&
            found.size() < static_cast<std::size_t>(limit)) {
            found.push_back(&entry);
        }
    }
    return found;
}

void MemoryCatalogue::start_removal(const std::string& store, const std::string& key) {
    removals_.try_emplace({store, key}, Removal{{store, key, 0}, Time()});
}

}  // namespace comfyd::assets::test
