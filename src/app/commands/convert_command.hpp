// `comfyd convert`: a workflow in any form that people have it, written in the API format. Also
// how `comfyd run` reads its file.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct ConvertFlags {
    std::string file;
    std::string object_info;  // a file; empty: from the server
    std::string url;
    std::string key;
    std::string output;  // empty: standard output
};

void add_convert_flags(CLI::App& command, ConvertFlags& flags);
int run_convert(ConvertFlags flags);  // an Exit code

// "-" is standard input. As workflow::read_workflow_file; Code::invalid_argument names the file.
Result<json::object> load_workflow_file(const std::string& file);

// `object_info`: the answer of GET /object_info. A workflow in API format comes back as it is.
Result<json::object> to_api_format(json::object workflow, const json::value& object_info);

}  // namespace comfyd::app
