// The names that clients gave to files which they uploaded: a tenant's own input, temp and output
// folders, whose files lie in the asset store. Any thread; blocks on the disk: for the pool.
// Durable: one line per name is appended to a file of the tenant.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"

namespace comfyd::api::native {

struct NamedFile {
    AssetId asset;
    std::string hash;
};

class FileNames {
public:
    static constexpr std::size_t kNamesMax = 100'000;  // of one tenant

    explicit FileNames(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // `path`: "folder/subfolder/name". As ComfyUI: the same content under a name keeps it, other
    // content gets "name (1).ext", "name (2).ext", …, unless `overwrite`. The path that was taken.
    // Code::storage_*, Code::payload_too_large when the tenant has too many.
    Result<std::string> put(
        const std::string& tenant, std::string path, const NamedFile& file, bool overwrite
    );
    Result<std::optional<NamedFile>> find(const std::string& tenant, const std::string& path);
    // The paths below "folder/", without it, in the order of their names.
    Result<std::vector<std::string>> list(const std::string& tenant, std::string_view folder);

private:
    using Names = std::map<std::string, NamedFile, std::less<>>;
    Names& load(const std::string& tenant);

    std::filesystem::path folder_;
    std::mutex mutex_;
    std::unordered_map<std::string, Names> tenants_;
};

}  // namespace comfyd::api::native
