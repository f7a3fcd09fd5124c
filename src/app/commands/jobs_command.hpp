// `comfyd jobs`: what was tried of a job, and the failed ones: which there are and why, to run one
// again with changes, and to throw them away.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct JobsFlags {
    std::string action{};  // show, failed, retry, purge
    std::string id{};
    std::string cause{};
    std::vector<std::string> parameters{};  // retry: NAME=VALUE
    std::string pool{};                     // retry
    double timeout_s = 0;                   // retry; 0: as it was
    bool all = false;                       // purge
    bool all_tenants = false;
    std::string url{};  // empty: COMFYD_URL, or this machine
    std::string key{};  // empty: COMFYD_KEY
    bool json = false;
};

void add_jobs_flags(CLI::App& command, JobsFlags& flags);
int run_jobs(JobsFlags flags);  // an Exit code

// Answers of the server in words, for tests.
std::string print_job(const json::object& job);
std::string print_dead_letters(const json::object& answer);

}  // namespace comfyd::app
