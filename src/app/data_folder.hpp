// The folder with everything that is stored, at start.
#pragma once

#include <filesystem>
#include <string>

#include "app/config/config.hpp"
#include "base/error.hpp"

namespace comfyd::app {

inline constexpr const char* kDatabaseFile = "comfyd.db";
inline constexpr const char* kAssetsFolder = "assets";
inline constexpr std::size_t kClusterSecretMin = 32;

Result<> make_data_folder(const std::filesystem::path& data);

// A database that is gone or empty beside files that it knew of is a mistake (a lost mount, a
// deleted file), after which every job would be unknown: Code::storage_unavailable unless that is
// accepted.
Result<> check_database(const std::filesystem::path& data, bool accepts_empty);

// A secret of this installation: made once, so that what is made with it survives a restart.
Result<std::string> load_key(const std::filesystem::path& file);

// The same by its name, for one process or for all nodes of a cluster.
Result<std::string> load_key(const Config& config, const std::string& name);

// What is stored fits together. Code::config_invalid, Code::storage_unavailable.
Result<> check_storage(const Config& config);

}  // namespace comfyd::app
