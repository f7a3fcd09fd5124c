#include "assets/blob_stores.hpp"

#include <utility>

#include "assets/drive/drive_store.hpp"
#include "assets/folder_store.hpp"
#include "assets/s3/s3_store.hpp"

namespace comfyd::assets {
namespace {

Result<std::unique_ptr<BlobStore>> make_folder_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
) {
    const auto path = setting.options.find("path");
    if (path == setting.options.end() || path->second.empty() || setting.options.size() > 1) {
        return fail(
            Code::config_invalid,
            "store '" + setting.name + "': the provider 'folder' takes 'path', and nothing else"
        );
    }
    return std::make_unique<FolderStore>(path->second, false, clock, pool);
}

Error of_store(const StoreSetting& setting, Error error) {
    error.message = "store '" + setting.name + "': " + error.message;
    return error;
}

Result<std::unique_ptr<BlobStore>> make_s3_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
) {
    auto settings = s3::read_settings(setting.options);
    if (!settings) {
        return fail(of_store(setting, std::move(settings.error())));
    }
    auto store = s3::S3Store::make(std::move(*settings), clock, pool);
    return store ? Result<std::unique_ptr<BlobStore>>(std::move(*store))
                 : fail(of_store(setting, std::move(store.error())));
}

Result<std::unique_ptr<BlobStore>> make_drive_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
) {
    auto settings = drive::read_settings(setting.options);
    if (!settings) {
        return fail(of_store(setting, std::move(settings.error())));
    }
    return std::make_unique<drive::DriveStore>(std::move(*settings), clock, pool);
}

}  // namespace

std::string_view store_name(std::string_view store) {
    return store.substr(0, store.find('/'));
}

std::string_view store_folder(std::string_view store) {
    const auto slash = store.find('/');
    return slash == std::string_view::npos ? std::string_view() : store.substr(slash + 1);
}

void BlobStores::add(std::string name, std::unique_ptr<BlobStore> store) {
    stores_.insert_or_assign(std::move(name), std::move(store));
}

void BlobStores::add_all(BlobStores others) {
    stores_.merge(others.stores_);
}

Result<> BlobStores::open() {
    for (const auto& [name, store] : stores_) {
        if (auto opened = store->open(); !opened) {
            opened.error().message = "store '" + name + "': " + opened.error().message;
            return opened;
        }
    }
    return {};
}

BlobStore* BlobStores::find(std::string_view store) const {
    const auto found = stores_.find(store_name(store));
    return found == stores_.end() ? nullptr : found->second.get();
}

Result<BlobStore*> BlobStores::get(std::string_view store) const {
    if (BlobStore* found = find(store)) {
        return found;
    }
    return fail(
        Code::config_invalid,
        "there is no store '" + std::string(store_name(store)) +
            "' any more, and contents lie in it: name it in 'stores' again"
    );
}

std::vector<std::string> BlobStores::names() const {
    std::vector<std::string> all;
    for (const auto& [name, store] : stores_) {
        all.push_back(name);
    }
    return all;
}

Result<std::unique_ptr<BlobStore>> make_blob_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
) {
    if (setting.provider == "folder") {
        return make_folder_store(setting, clock, pool);
    }
    if (setting.provider == "s3") {
        return make_s3_store(setting, clock, pool);
    }
    if (setting.provider == "drive") {
        return make_drive_store(setting, clock, pool);
    }
    return fail(
        Code::config_invalid,
        "store '" + setting.name + "': there is no provider '" + setting.provider +
            "'; there are 'folder', 's3' and 'drive'"
    );
}

}  // namespace comfyd::assets
