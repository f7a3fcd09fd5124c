#include "assets/blob_stores.hpp"

#include <utility>

#include "assets/folder_store.hpp"

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

}  // namespace

Result<std::unique_ptr<BlobStore>> make_blob_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
) {
    if (setting.provider == "folder") {
        return make_folder_store(setting, clock, pool);
    }
    return fail(
        Code::config_invalid,
        "store '" + setting.name + "': there is no provider '" + setting.provider +
            "'; there is 'folder'"
    );
}

}  // namespace comfyd::assets
