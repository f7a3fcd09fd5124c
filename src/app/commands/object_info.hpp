// The node classes that a command goes by: a server's answer of /object_info, kept in a file or
// asked for now.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::app {

struct ObjectInfoSource {
    std::string file{};  // is taken before the server
    std::string url{};   // of comfyd or of a ComfyUI
    std::string key{};
};

// Code::invalid_argument: not readable, or no JSON; Code::connection_failed and
// Code::request_timeout: no answer. Blocks.
Result<json::value> load_object_info(const ObjectInfoSource& source);

}  // namespace comfyd::app
