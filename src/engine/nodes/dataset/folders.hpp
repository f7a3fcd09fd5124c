// Folders that prompts name: always inside the folder they belong to.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.hpp"

namespace comfyd::engine::nodes {

// A node error where the name leads out of `root`, also through a link.
Result<std::filesystem::path> folder_inside(
    const std::filesystem::path& root, const std::string& name
);

}  // namespace comfyd::engine::nodes
