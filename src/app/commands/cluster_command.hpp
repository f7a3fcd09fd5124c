// `comfyd cluster`: asks a server which nodes it is one service with, and prints the answer for
// people.
#pragma once

#include <string>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct ClusterFlags {
    std::string url{};  // empty: COMFYD_URL, or this machine
    std::string key{};  // empty: COMFYD_KEY
    bool json = false;
};

void add_cluster_flags(CLI::App& command, ClusterFlags& flags);
int run_cluster(ClusterFlags flags);  // an Exit code

// An answer of the server in words, for tests.
std::string print_cluster(const json::object& cluster);

}  // namespace comfyd::app
