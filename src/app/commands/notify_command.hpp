// `comfyd notify test`: a sample by one of the configured channels, to see that it arrives. Needs
// no server.
#pragma once

#include <string>
#include <vector>

#include "app/config/config.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct NotifyTestFlags {
    std::string channel{};
    std::vector<std::string> to{};  // empty: whom the rules name
};

void add_notify_test_flags(CLI::App& command, NotifyTestFlags& flags);
int run_notify_test(const Config& config, const NotifyTestFlags& flags);  // an Exit code

}  // namespace comfyd::app
