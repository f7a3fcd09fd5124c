// `comfyd batches`: looks after batches on a server.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace comfyd::app {

struct BatchesFlags {
    std::string action{};  // list, show, pause, resume, cancel, retry, zip
    std::string id{};
    std::string output{};  // of zip; empty: named after the batch
    std::string url{};     // empty: COMFYD_URL, or this machine
    std::string key{};     // empty: COMFYD_KEY
    bool json = false;
};

void add_batches_flags(CLI::App& command, BatchesFlags& flags);
int run_batches(BatchesFlags flags);  // an Exit code

}  // namespace comfyd::app
