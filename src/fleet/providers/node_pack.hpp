// The node pack of comfyd itself (worker/comfyui_nodes/comfyd), which lets a ComfyUI merge jobs and
// judge prompts. This program has it in it.
#pragma once

#include <filesystem>

#include "base/error.hpp"

namespace comfyd::fleet {

// Its files. Failures as of write_file(). Blocks: for a pool.
Result<> write_node_pack(const std::filesystem::path& into);

}  // namespace comfyd::fleet
