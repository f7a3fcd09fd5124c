// The engine of `comfyd serve`: this program again, as `comfyd engine` in a child process.
#pragma once

#include <filesystem>
#include <memory>

#include "app/config/config.hpp"
#include "fleet/options.hpp"

namespace comfyd::app {

// What it can run.
Result<std::shared_ptr<const workflow::NodeClasses>> engine_classes();

// `number`: 1, 2, …; each has a folder of its own in `data`.
// What the engine of this number calls its own.
std::filesystem::path engine_folder(const std::filesystem::path& data, int number);

fleet::EngineConfig engine_process(
    const Config& config,
    const std::filesystem::path& data,
    int number,
    std::shared_ptr<const workflow::NodeClasses> classes
);

}  // namespace comfyd::app
