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
    return std::make_unique<FolderStore>(path->second, clock, pool);
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
