#include "assets/store.hpp"

#include <algorithm>
#include <utility>

#include "assets/blob_key.hpp"
#include "assets/crc32.hpp"
#include "assets/files.hpp"
#include "assets/folder_store.hpp"
#include "assets/store_impl.hpp"

namespace comfyd::assets {
namespace {

namespace fs = std::filesystem;

Error no_such_asset(const AssetId& id) {
    return Error(Code::not_found, "there is no asset " + id.to_string());
}

Error not_stored(const std::string& hash) {
    return Error(Code::output_unavailable, "the content of '" + hash + "' is no longer stored");
}

// A doomed one is good for reading as long as it is there.
int rank_of(const BlobRecord& blob, const Asset& asset) {
    if (blob.state == BlobState::live && blob.store == asset.store) {
        return 3;
    }
    if (blob.store == kLocalStore && blob.state != BlobState::uploading) {
        return blob.state == BlobState::live ? 2 : 1;
    }
    return 0;
}

BlobStores with_local(BlobStores others, const fs::path& directory, Clock& clock, Pool& pool) {
    BlobStores all;
    all.add(
        std::string(kLocalStore),
        std::make_unique<FolderStore>(directory / "blobs", true, clock, pool)
    );
    all.add_all(std::move(others));
    return all;
}

}  // namespace

Store::Store(
    const StoreOptions& options, Catalogue& catalogue, Clock& clock, Pool& pool, BlobStores others
)
    : impl_(std::make_unique<Impl>(options, catalogue, clock, pool, std::move(others))) {}

Store::~Store() = default;

Store::Impl::Impl(
    const StoreOptions& options, Catalogue& catalogue, Clock& clock, Pool& pool, BlobStores others
)
    : options_(options),
      catalogue_(catalogue),
      clock_(clock),
      pool_(pool),
      inbox_(options.directory / "incoming", options.blob_bytes_max, clock, options.is_shared),
      stores_(with_local(std::move(others), options.directory, clock, pool)),
      sweeper_(stores_, catalogue, clock, {options.young, options.retention}),
      uploader_(stores_, catalogue, inbox_, clock, pool) {}

Result<> Store::open() {
    return impl_->open();
}

const BlobStores& Store::stores() const {
    return impl_->stores();
}

Task<Result<BlobRecords::Waiting>> Store::waiting() {
    return impl_->catalogue().waiting();
}

Result<> Store::Impl::open() {
    const fs::path& directory = options_.directory;
    std::error_code error;
    fs::create_directories(directory.parent_path(), error);
    if (error) {
        return fail(storage_error("make the folder", directory.parent_path(), error.value()));
    }
    if (auto made = make_folder(directory); !made) {
        return made;
    }
    if (auto opened = stores_.open(); !opened) {
        return opened;
    }
    return inbox_.open();
}

Task<Result<std::optional<BlobRecord>>> Store::Impl::find_blob(const Asset& asset) {
    if (asset.generation != 0) {
        BlobRecord coming;  // it is written together with the asset's
        coming.hash = asset.hash;
        coming.store = kLocalStore;
        coming.generation = asset.generation;
        coming.key = make_blob_key(asset.hash, asset.generation);
        coming.size_bytes = asset.size_bytes;
        coming.state = BlobState::live;
        co_return coming;
    }
    auto blobs = co_await catalogue_.blobs_of(asset.hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    std::optional<BlobRecord> best;
    for (BlobRecord& blob : *blobs) {
        if (rank_of(blob, asset) > (best ? rank_of(*best, asset) : 0)) {
            best = std::move(blob);
        }
    }
    co_return best;
}

Task<Result<std::optional<Content>>> Store::Impl::find_content(Asset asset, LinkTerms terms) {
    if (asset.bytes) {
        co_return Content(*asset.bytes);
    }
    if (is_small(asset.size_bytes)) {
        auto kept = co_await catalogue_.kept_bytes(asset.hash);
        if (!kept || *kept) {
            co_return kept ? Result<std::optional<Content>>(Content(std::move(**kept)))
                           : fail(std::move(kept.error()));
        }
    }
    auto blob = co_await find_blob(asset);
    if (!blob || !*blob) {
        co_return blob ? Result<std::optional<Content>>(std::nullopt)
                       : fail(std::move(blob.error()));
    }
    const auto store = stores_.get((*blob)->store);
    if (!store) {
        co_return fail(store.error());
    }
    auto place = co_await (*store)->find((*blob)->key, std::move(terms));
    if (!place || !*place) {
        co_return place ? Result<std::optional<Content>>(std::nullopt)
                        : fail(std::move(place.error()));
    }
    co_return std::visit([](auto& where) { return Content(std::move(where)); }, **place);
}

// A file that is gone, or was cut off, is no use to anybody: it is given up, and the bytes that
// have come take its place.
Task<Result<bool>> Store::Impl::is_whole(BlobRecord blob) {
    if (blob.store != kLocalStore) {
        co_return true;
    }
    auto place = co_await stores_.local().find(blob.key, {});
    if (!place) {
        co_return fail(std::move(place.error()));
    }
    std::uintmax_t size = 0;
    if (*place) {
        const fs::path& path = std::get<fs::path>(**place);
        size = co_await pool_.run([&path] {
            std::error_code error;
            const auto found = fs::file_size(path, error);
            return error ? 0 : found;
        });
    }
    if (*place && size == blob.size_bytes) {
        co_return true;
    }
    auto given_up = co_await catalogue_.give_up(std::move(blob), clock_.now() + options_.young);
    co_return given_up ? Result<bool>(false) : fail(std::move(given_up.error()));
}

Task<Result<std::optional<std::string>>> Store::Impl::hold(std::string hash, std::string store) {
    auto blobs = co_await catalogue_.blobs_of(hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    for (const std::string& wanted : {std::string(kLocalStore), store}) {
        const auto live = std::ranges::find_if(*blobs, [&](const BlobRecord& blob) {
            return blob.state == BlobState::live && blob.store == wanted;
        });
        auto held = Result<bool>(false);
        if (live != blobs->end()) {
            held = co_await is_whole(*live);
        }
        if (held && *held) {
            held = co_await catalogue_.hold(hash, wanted, clock_.now() + options_.young);
        }
        if (!held || *held) {
            co_return held ? Result<std::optional<std::string>>(wanted)
                           : fail(std::move(held.error()));
        }
    }
    co_return std::nullopt;
}

Task<Result<Asset>> Store::get(std::optional<std::string> tenant, AssetId id) {
    auto found = co_await impl_->catalogue().find(id);
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    const bool is_visible = *found && (!tenant || (*found)->tenant == *tenant) &&
                            (!(*found)->expires_at || impl_->now() < *(*found)->expires_at);
    if (!is_visible) {
        co_return fail(no_such_asset(id));
    }
    co_return std::move(**found);
}

Task<Result<std::optional<Asset>>> Store::find_hash(std::string tenant, std::string hash) {
    auto known = co_await impl_->catalogue().find_by_hash(std::move(tenant), hash);
    if (!known || !*known) {
        co_return known;
    }
    auto found = co_await impl_->find_content(**known, {});
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    co_return *found ? std::move(*known) : std::nullopt;
}

Task<Result<bool>> Store::has_hash(std::string tenant, std::string hash) {
    auto found = co_await find_hash(std::move(tenant), std::move(hash));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    co_return found->has_value();
}

Task<Result<>> Store::remove(std::string tenant, AssetId id) {
    auto asset = co_await get(std::move(tenant), id);
    if (!asset) {
        co_return fail(std::move(asset.error()));
    }
    auto removed = co_await impl_->catalogue().remove(id);
    if (!removed) {
        co_return fail(std::move(removed.error()));
    }
    co_return *removed ? Result<>() : fail(no_such_asset(id));
}

Task<Result<Content>> Store::content(Asset asset, LinkTerms terms) {
    std::string hash = asset.hash;
    auto found = co_await impl_->find_content(std::move(asset), std::move(terms));
    if (!found || !*found) {
        co_return found ? fail(not_stored(hash)) : fail(std::move(found.error()));
    }
    co_return std::move(**found);
}

Task<Result<std::string>> Store::read_part(Asset asset, std::uint64_t first) {
    auto blob = co_await impl_->find_blob(asset);
    if (!blob || !*blob) {
        co_return blob ? fail(not_stored(asset.hash)) : fail(std::move(blob.error()));
    }
    const auto store = impl_->stores().get((*blob)->store);
    if (!store) {
        co_return fail(store.error());
    }
    if (first >= asset.size_bytes) {
        co_return std::string();
    }
    auto part = co_await (*store)->read(
        (*blob)->key, first, std::min(kPartBytes, asset.size_bytes - first)
    );
    if (!part && part.error().code == Code::not_found) {
        co_return fail(not_stored(asset.hash));
    }
    if (part && part->empty()) {
        co_return fail(Code::storage_unavailable, "the content of '" + asset.hash + "' is cut off");
    }
    co_return part;
}

Task<Result<std::string>> Store::read(Asset asset, std::uint64_t bytes_max) {
    if (asset.size_bytes > bytes_max) {
        co_return fail(
            Code::payload_too_large,
            "the content has " + std::to_string(asset.size_bytes) + " bytes, more than the " +
                std::to_string(bytes_max) + " allowed here"
        );
    }
    if (impl_->is_small(asset.size_bytes)) {
        auto found = co_await content(asset);
        if (!found) {
            co_return fail(std::move(found.error()));
        }
        if (auto* kept = std::get_if<std::string>(&*found)) {
            co_return std::move(*kept);
        }
    }
    std::string bytes;
    do {
        auto part = co_await read_part(asset, bytes.size());
        if (!part) {
            co_return fail(std::move(part.error()));
        }
        bytes += *part;
    } while (bytes.size() < asset.size_bytes);
    co_return bytes;
}

Task<Result<std::uint32_t>> Store::crc32(Asset asset) {
    if (asset.crc32) {
        co_return *asset.crc32;
    }
    std::uint32_t sum = 0;
    if (impl_->is_small(asset.size_bytes)) {
        auto bytes = co_await read(asset, asset.size_bytes);
        if (!bytes) {
            co_return fail(std::move(bytes.error()));
        }
        sum = update_crc32(0, *bytes);
    } else {
        for (std::uint64_t at = 0; at < asset.size_bytes;) {
            auto part = co_await read_part(asset, at);
            if (!part) {
                co_return fail(std::move(part.error()));
            }
            sum = update_crc32(sum, *part);
            at += part->size();
        }
    }
    auto kept = co_await impl_->catalogue().set_crc32(asset.id, sum);
    co_return kept ? Result<std::uint32_t>(sum) : fail(std::move(kept.error()));
}

Task<Result<bool>> Store::is_pending(Asset asset) {
    if (asset.store == kLocalStore) {
        co_return false;
    }
    auto blobs = co_await impl_->catalogue().blobs_of(asset.hash);
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    co_return std::none_of(blobs->begin(), blobs->end(), [&](const BlobRecord& blob) {
        return blob.state == BlobState::live && blob.store == asset.store;
    });
}

Task<Result<int>> Store::sweep() {
    auto removed = co_await impl_->sweeper().sweep();
    co_return removed;
}

Task<Result<int>> Store::upload() {
    auto uploaded = co_await impl_->uploader().run();
    co_return uploaded;
}

Task<Result<std::vector<Store::Due>>> Store::due(
    Time by, bool expiring, std::optional<Asset> after, int limit
) {
    auto found = Result<std::vector<Asset>>();
    if (expiring) {
        found = co_await impl_->catalogue().expired(by, std::move(after), limit);
    } else {
        found = co_await impl_->catalogue().moving(by, std::move(after), limit);
    }
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    std::vector<Due> all;
    for (Asset& asset : *found) {
        const auto to = impl_->retention().storage_class(
            asset.retention.value_or(RetentionClass::standard), by - asset.created_at
        );
        all.push_back({std::move(asset), expiring, to});
    }
    co_return all;
}

}  // namespace comfyd::assets
