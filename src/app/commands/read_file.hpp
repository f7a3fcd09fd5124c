// A file that a command was given, whole.
#pragma once

#include <string>

#include "base/error.hpp"

namespace comfyd::app {

// "-" is standard input. Code::invalid_argument names the file; at most 512 MiB.
Result<std::string> read_given_file(const std::string& file);

}  // namespace comfyd::app
