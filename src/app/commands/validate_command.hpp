// `comfyd validate`: says what is wrong with a workflow, and with --plan what running it would
// take. Needs no server; with the node classes of one (--url, --object-info) it knows what ComfyUI
// knows.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct ValidateFlags {
    std::string file{};
    std::string object_info{};  // a file; without it and a url node classes are not checked
    std::string url{};          // of a server that has the node classes
    std::string key{};
    std::string config{};                   // a file; empty: defaults and the environment
    std::vector<std::string> parameters{};  // "name=value"
    bool json = false;
    bool plan = false;
    bool fix = false;
};

void add_validate_flags(CLI::App& command, ValidateFlags& flags);
int run_validate(const ValidateFlags& flags);  // an Exit code

// What it prints and whether the workflow is valid, for tests.
struct ValidateOutcome {
    bool valid = false;
    std::string text;
};
Result<ValidateOutcome> validate_file(const ValidateFlags& flags);

}  // namespace comfyd::app
