// The engine of `comfyd serve`: this program again, as `comfyd engine` in a child process.
#pragma once

#include <filesystem>
#include <vector>

#include "app/config/config.hpp"
#include "fleet/options.hpp"

namespace comfyd::app {

// As many as are wanted, each with a folder of its own in `data`.
Result<std::vector<fleet::EngineConfig>> engine_processes(
    const Config& config, const std::filesystem::path& data
);
// Their folders.
std::vector<std::filesystem::path> engine_folders(
    const Config& config, const std::filesystem::path& data
);

}  // namespace comfyd::app
