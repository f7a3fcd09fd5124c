// `comfyd keys` and `comfyd tenants`: a server's API keys and tenants, for operators.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct KeysFlags {
    std::string action{};  // create, list, rotate, revoke, remove
    std::string what{};    // create: the name; else the id
    std::string tenant{};
    std::vector<std::string> scopes{};
    std::string expires{};           // days, or a time
    double requests_per_minute = 0;  // create; 0: as its tenant may
    double old_key_hours = 24;       // rotate
    std::string url{};               // empty: COMFYD_URL, or this machine
    std::string key{};               // empty: COMFYD_KEY
    bool json = false;
};

struct TenantsFlags {
    std::string action{};  // create, list, show, set, remove
    std::string name{};
    std::vector<std::string> members{};  // "tier=pro"
    std::string url{};
    std::string key{};
    bool json = false;
};

void add_keys_flags(CLI::App& command, KeysFlags& flags);
void add_tenants_flags(CLI::App& command, TenantsFlags& flags);
int run_keys(KeysFlags flags);  // an Exit code, like the next
int run_tenants(TenantsFlags flags);

// Answers of the server in words, for tests.
std::string print_keys(const json::object& answer);
std::string print_tenants(const json::object& answer);
std::string print_tenant(const json::object& tenant);
// "tier=pro" as JSON has it: what reads as JSON is that, a list has commas, all else is text.
Result<json::object> read_assignments(const std::vector<std::string>& members);

}  // namespace comfyd::app
