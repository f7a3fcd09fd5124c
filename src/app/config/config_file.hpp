// The configuration file.
#pragma once

#include <string>

#include "app/config/config.hpp"

namespace comfyd::app {

// What the YAML file says goes into `config`. Code::invalid_argument with file and line.
Result<> read_config_file(const std::string& file, Config& config);

}  // namespace comfyd::app
