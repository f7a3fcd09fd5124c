#include "assets/store.hpp"

#include <utility>

#include "assets/files.hpp"
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

}  // namespace

Store::Store(const StoreOptions& options, Catalogue& catalogue, Clock& clock, Pool& pool)
    : Store(
          options,
          make_hashed_blobs({options.directory, options.young}, clock, pool),
          catalogue,
          clock,
          pool
      ) {}

Store::Store(
    const StoreOptions& options,
    std::unique_ptr<HashedBlobs> blobs,
    Catalogue& catalogue,
    Clock& clock,
    Pool& pool
)
    : impl_(std::make_unique<Impl>(options, std::move(blobs), catalogue, clock, pool)) {}

Store::~Store() = default;

Result<> Store::open() {
    return impl_->open();
}

Result<> Store::Impl::open() {
    std::error_code error;
    fs::create_directories(directory_.parent_path(), error);
    if (error) {
        return fail(storage_error("make the folder", directory_.parent_path(), error.value()));
    }
    if (auto made = make_folder(directory_); !made) {
        return made;
    }
    if (auto opened = blobs_->open(); !opened) {
        return opened;
    }
    return inbox_.open();
}

Task<Result<std::optional<Content>>> Store::Impl::find_content(Asset asset) {
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
    auto place = co_await blobs_->find(asset.hash);
    if (!place || !*place) {
        co_return place ? Result<std::optional<Content>>(std::nullopt)
                        : fail(std::move(place.error()));
    }
    co_return std::visit([](auto& where) { return Content(std::move(where)); }, (*place)->where);
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
    auto found = co_await impl_->find_content(**known);
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
    if (!*removed) {
        co_return fail(no_such_asset(id));
    }
    impl_->sweeper().add_loose(asset->hash);
    co_return Result<>();
}

Task<Result<Content>> Store::content(Asset asset) {
    std::string hash = asset.hash;
    auto found = co_await impl_->find_content(std::move(asset));
    if (!found || !*found) {
        co_return found ? fail(not_stored(hash)) : fail(std::move(found.error()));
    }
    co_return std::move(**found);
}

Task<Result<std::string>> Store::read(Asset asset, std::uint64_t bytes_max) {
    if (asset.size_bytes > bytes_max) {
        co_return fail(
            Code::payload_too_large,
            "the content has " + std::to_string(asset.size_bytes) + " bytes, more than the " +
                std::to_string(bytes_max) + " allowed here"
        );
    }
    std::string hash = asset.hash;
    auto found = co_await content(std::move(asset));
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (auto* kept = std::get_if<std::string>(&*found)) {
        co_return std::move(*kept);
    }
    auto bytes = co_await impl_->blobs().read(hash, bytes_max);
    if (!bytes && bytes.error().code == Code::not_found) {
        co_return fail(not_stored(hash));
    }
    co_return bytes;
}

Task<Result<int>> Store::sweep() {
    auto records = co_await impl_->sweeper().remove_expired_records();
    if (!records) {
        co_return fail(std::move(records.error()));
    }
    auto blobs = co_await impl_->sweeper().remove_loose_blobs();
    if (!blobs) {
        co_return fail(std::move(blobs.error()));
    }
    co_return *records + *blobs;
}

}  // namespace comfyd::assets
