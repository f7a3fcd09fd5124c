// `comfyd models`: the register of models of a server.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct ModelsFlags {
    std::string action = "list";  // list, show, add, use, rollback, remove
    std::string path{};           // FOLDER/NAME
    std::vector<std::string> sources{};
    std::string sha256{};
    std::string upload{};  // add: a file that is brought to the server first
    long long bytes = 0;
    int version = 0;           // use, remove
    bool not_current = false;  // add
    std::string url{};         // empty: COMFYD_URL, or this machine
    std::string key{};         // empty: COMFYD_KEY
    bool json = false;
};

void add_models_flags(CLI::App& command, ModelsFlags& flags);
int run_models(ModelsFlags flags);  // an Exit code

// Answers of the server in words, for tests.
std::string print_models(const json::object& answer);
std::string print_model(const json::object& model);

}  // namespace comfyd::app
