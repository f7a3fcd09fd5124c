// `comfyd run`: submits a workflow to a comfyd server, shows its progress and fetches the outputs.
#pragma once

#include <string>
#include <vector>

namespace comfyd::app {

struct RunOptions {
    std::string file;
    std::vector<std::string> parameters;  // "name=value"
    std::string directory = "out";
    std::string url;
    std::string key;
    int priority = 5;
    std::string pool;   // empty: the tenant's
    std::string gpu{};  // a kind; empty: any
    double gpu_memory_gb = 0;
    std::string region{};  // empty: any
    std::string table{};   // a file of parameter sets, one run for each; empty: one run
};

int run_workflow(RunOptions options);  // an Exit code

}  // namespace comfyd::app
