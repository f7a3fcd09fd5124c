// The names that clients gave to files which they uploaded: a tenant's own input, temp and output
// folders, whose files lie in the asset store. Any thread. Durable: one line per name is appended
// to a file of the tenant, which processes that share the folder share.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/mutex.hpp"
#include "base/pool.hpp"
#include "base/shared_lines.hpp"
#include "base/task.hpp"

namespace comfyd::admission {

struct NamedFile {
    AssetId asset;
    std::string hash;
};

class FileNames {
public:
    static constexpr std::size_t kNamesMax = 100'000;  // of one tenant

    FileNames(std::filesystem::path folder, Pool& disk) : folder_(std::move(folder)), disk_(disk) {}

    // `path`: "folder/subfolder/name". As ComfyUI: the same content under a name keeps it, other
    // content gets "name (1).ext", "name (2).ext", …, unless `overwrite`. The path that was taken.
    // Code::storage_*, Code::payload_too_large when the tenant has too many.
    Task<Result<std::string>> put(
        std::string tenant, std::string path, NamedFile file, bool overwrite
    );
    Task<std::optional<NamedFile>> find(std::string tenant, std::string path);
    // The paths below "folder/", without it, in the order of their names.
    Task<std::vector<std::string>> list(std::string tenant, std::string folder);

private:
    using Names = std::map<std::string, NamedFile, std::less<>>;
    struct Tenant {
        explicit Tenant(std::filesystem::path file) : lines(std::move(file)) {}
        SharedLines lines;
        Names names;
    };
    // These block on the disk.
    Tenant& load(const std::string& tenant) COMFYD_REQUIRES(mutex_);
    Result<std::string> put_now(
        const std::string& tenant, std::string path, const NamedFile& file, bool overwrite
    );

    std::filesystem::path folder_;
    Pool& disk_;
    Mutex mutex_;
    std::unordered_map<std::string, Tenant> tenants_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::admission
