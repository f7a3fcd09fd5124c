// The input, output and temp folders, as /view and the uploads see them. Blocks on the disk: for
// the pool.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "comfy/server/files.hpp"
#include "engine/engine.hpp"

namespace comfyd::standalone {

using comfy::server::FileName;

// nullptr: there is no such folder.
const std::filesystem::path* folder_of(const engine::Folders& folders, std::string_view type);

// `inner` below `outer`. Code::forbidden when it leads out of it.
Result<std::filesystem::path> place_below(
    const std::filesystem::path& outer, std::string_view inner
);

// The file that is meant. Code::not_found.
Result<std::filesystem::path> find_file(const engine::Folders& folders, const FileName& file);

// Stores an upload by ComfyUI's rules: the same content under a name keeps it, other content gets
// "name (1).ext", …, unless `overwrite`. The name that was taken. Code::invalid_argument for a bad
// name, Code::storage_*.
Result<FileName> store_upload(
    const engine::Folders& folders, FileName wanted, std::string_view bytes, bool overwrite
);

// Names of the files directly in a folder, newest first.
std::vector<std::string> list_newest_first(const std::filesystem::path& folder);

}  // namespace comfyd::standalone
