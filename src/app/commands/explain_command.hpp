// `comfyd explain`: asks a server why a job waits and prints the answer for people.
#pragma once

#include <string>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct ExplainFlags {
    std::string id{};
    std::string url{};  // empty: COMFYD_URL, or this machine
    std::string key{};  // empty: COMFYD_KEY
    bool json = false;
};

void add_explain_flags(CLI::App& command, ExplainFlags& flags);
int run_explain(ExplainFlags flags);  // an Exit code

// An answer of the server in words, for tests.
std::string print_explanation(const json::object& explanation);

}  // namespace comfyd::app
