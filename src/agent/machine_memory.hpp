// The main memory that this machine, or the container around the agent, has for ComfyUI.
#pragma once

#include <cstdint>
#include <filesystem>

namespace comfyd::agent {

// In bytes: that of the machine, or what its control group allows where that is less. `tree`: where
// control groups are shown, of either version.
std::uint64_t memory_total(const std::filesystem::path& tree = "/sys/fs/cgroup");

}  // namespace comfyd::agent
