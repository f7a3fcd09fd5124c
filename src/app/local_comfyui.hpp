// `comfyd serve --comfyui DIR` in the words of the fleet: one provider of processes, and the pool
// that they form.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "app/config/config.hpp"
#include "base/error.hpp"
#include "fleet/providers/local_pool.hpp"

namespace comfyd::app {

inline constexpr const char* kLocalProvider = "local";

// Adds both to the configuration, with as many machines as there are places on the GPUs of this
// computer. Nothing happens without comfyui.dir. Blocks: for a start. Code::config_invalid.
Result<> add_local_comfyui(Config& config, const GpuSources& gpus = {});

// The settings of a provider of the kind `process`, or of `comfyui`.
Result<fleet::LocalPool> local_pool_of(
    const std::map<std::string, std::string>& options,
    const std::filesystem::path& data,
    const GpuSources& gpus = {}
);

}  // namespace comfyd::app
