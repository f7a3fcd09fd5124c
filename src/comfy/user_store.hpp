// What the editor stores of a user: settings and documents, as files of one folder.
//
// ComfyUI's layout: comfy.settings.json holds the settings, everything else are documents such as
// workflows/a.json. Names that lead out of the folder are refused; files are there whole or not at
// all. Any thread; blocks on the disk: for the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

class UserStore {
public:
    static constexpr std::size_t kListedMax = 10'000;
    static constexpr std::uint64_t kSettingsBytesMax = 16 * 1024 * 1024;

    explicit UserStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // An empty object when there are none. Code::storage_unavailable when they cannot be read.
    Result<json::object> settings() const;
    // Replaces the named ones. Code::payload_too_large, Code::storage_*.
    Result<> change_settings(const json::object& changes);

    // Common to all below: Code::forbidden for a name that leads out of the folder,
    // Code::storage_*.

    // The files of a folder, hidden ones left out, with paths relative to it, in their order. At
    // most kListedMax. Code::not_found.
    Result<std::vector<UserFile>> list(std::string_view folder, bool recurse) const;
    // Files and folders directly in `folder` (empty: the whole store), in the form of
    // GET /v2/userdata. Code::not_found.
    Result<json::array> entries(std::string_view folder) const;
    // Where a file is. Code::not_found.
    Result<std::filesystem::path> find(std::string_view file) const;
    // Code::conflict when it is there and must not be replaced.
    Result<UserFile> write(std::string_view file, std::string_view bytes, bool overwrite);
    // Code::not_found.
    Result<> remove(std::string_view file);
    // Code::not_found, Code::conflict.
    Result<UserFile> move(std::string_view from, std::string_view to, bool overwrite);

private:
    Result<std::filesystem::path> place_of(std::string_view name) const;
    Result<UserFile> about(const std::filesystem::path& path) const;

    std::filesystem::path folder_;
    mutable Mutex mutex_;  // of changes
};

// The form of GET /userdata: names, [name, parts…] where `split`, or whole entries where
// `full_info`.
json::array to_json(const std::vector<UserFile>& files, bool full_info, bool split);

}  // namespace comfyd::comfy
