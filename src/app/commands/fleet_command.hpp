// `comfyd fleet`: the machines that a server keeps, for operators.
#pragma once

#include <string>

#include "base/json.hpp"
#include "base/time.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct FleetFlags {
    std::string action = "show";  // show, events, decisions, resize, resume, remove, logs
    std::string what{};           // of a pool or an instance
    std::string size{};           // resize: how many, or "configured"
    int lines = 200;              // logs
    bool watch = false;           // show: again and again
    std::string url{};            // empty: COMFYD_URL, or this machine
    std::string key{};            // empty: COMFYD_KEY
    bool json = false;
};

void add_fleet_flags(CLI::App& command, FleetFlags& flags);
int run_fleet(FleetFlags flags);  // an Exit code

// Answers of the server in words, for tests.
std::string print_fleet(const json::object& fleet, Time now);
std::string print_fleet_events(const json::object& answer);
std::string print_fleet_decisions(const json::object& answer);

}  // namespace comfyd::app
