// `comfyd webhooks`: a server's endpoints, what became of deliveries, and what to do with those
// that were given up.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace CLI {
class App;
}

namespace comfyd::app {

struct WebhooksFlags {
    std::string action{};  // endpoints, deliveries, show, replay, purge, test
    std::string id{};      // of a delivery; test: of an endpoint
    std::string state{};
    std::string receiver{};
    bool all = false;  // replay, purge: every dead letter, or every one to the receiver
    bool all_tenants = false;
    std::string url{};  // empty: COMFYD_URL, or this machine
    std::string key{};  // empty: COMFYD_KEY
    bool json = false;
};

void add_webhooks_flags(CLI::App& command, WebhooksFlags& flags);
int run_webhooks(WebhooksFlags flags);  // an Exit code

// Answers of the server in words, for tests.
std::string print_endpoints(const json::object& answer);
std::string print_deliveries(const json::object& answer);
std::string print_delivery(const json::object& delivery);

}  // namespace comfyd::app
