// The SHA-256 of a file, however large. Blocks: for a pool.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace comfyd::models {

// In hex; empty: it cannot be read, or `stop` said so in the middle of it.
std::string hash_file(const std::filesystem::path& path, const std::function<bool()>& stop);

}  // namespace comfyd::models
