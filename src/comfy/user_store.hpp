// What the editor stores of a user: settings and documents, as files of one folder.
//
// ComfyUI's layout: comfy.settings.json holds the settings, everything else are documents such as
// workflows/a.json. Names that lead out of the folder are refused; files are there whole or not at
// all. Any thread; blocks on the disk: for the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mutex.hpp"

namespace comfyd::comfy {

struct UserFile {
    std::string path;  // relative, with '/'
    std::uint64_t size = 0;
    std::int64_t modified = 0;  // milliseconds
    std::int64_t created = 0;

    json::object to_json() const;
};

struct UserLimits {
    std::uint64_t settings_bytes_max = 16 * 1024 * 1024;
    // Of all files together.
    std::size_t files_max = std::numeric_limits<std::size_t>::max();
    std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();
};

class UserStore {
public:
    static constexpr std::size_t kListedMax = 20'000;

    explicit UserStore(std::filesystem::path folder, UserLimits limits = {})
        : folder_(std::move(folder)), limits_(limits) {}

    // Whether anything was ever stored.
    bool exists() const;

    // An empty object when there are none, or what is there is damaged. Code::storage_unavailable.
    Result<json::object> settings() const;
    // Replaces the named ones; damaged ones are put aside. Code::payload_too_large,
    // Code::storage_*.
    Result<> change_settings(const json::object& changes);

    // Common to all below: Code::forbidden for a name that leads out of the folder,
    // Code::storage_*.

    Result<> check_name(std::string_view name) const;

    // The files of a folder, hidden ones left out, with paths relative to it, in their order. At
    // most kListedMax. Code::not_found.
    Result<std::vector<UserFile>> list(std::string_view folder, bool recurse) const;
    // All folders, then all files below `folder` (empty: the whole store), each by name, in the
    // form of GET /v2/userdata. Code::not_found; Code::invalid_argument: it is a file.
    Result<json::array> entries(std::string_view folder) const;
    // Where a file is. Code::not_found.
    Result<std::filesystem::path> find(std::string_view file) const;
    // Code::conflict when it is there and must not be replaced; Code::storage_full also when there
    // are too many files.
    Result<UserFile> write(std::string_view file, std::string_view bytes, bool overwrite);
    // Code::not_found.
    Result<> remove(std::string_view file);
    // Code::not_found, Code::conflict.
    Result<UserFile> move(std::string_view from, std::string_view to, bool overwrite);

private:
    Result<std::filesystem::path> place_of(std::string_view name) const;
    Result<UserFile> about(const std::filesystem::path& path) const;
    void put_damaged_aside() const;
    Result<> check_share(std::uint64_t added) const;

    std::filesystem::path folder_;
    UserLimits limits_;
    mutable Mutex mutex_;  // of changes
};

// The form of GET /userdata: names, [name, parts…] where `split`, or whole entries where
// `full_info`.
json::array to_json(const std::vector<UserFile>& files, bool full_info, bool split);

}  // namespace comfyd::comfy
