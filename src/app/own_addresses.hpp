// Keeps the guard (net/address_guard.hpp) in the know of which public addresses comfyd and the
// machines that it works with have: names are looked up again every minute.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "base/task.hpp"

namespace comfyd::app {

class OwnAddresses {
public:
    OwnAddresses(Executor executor, const Config& config);

    // On the executor. What needs no look-up is known from then on.
    void start();
    Task<> stop();

private:
    Task<> keep_up();
    Task<> look_up_all();
    void tell() const;

    Executor executor_;
    std::vector<std::string> names_;      // that are refused by themselves
    std::vector<std::string> looked_up_;  // those whose addresses are theirs alone
    std::vector<std::string> here_;       // of this machine, and those that were configured
    std::map<std::string, std::vector<std::string>> found_;  // by name; as last heard
    TaskGroup tasks_;
};

}  // namespace comfyd::app
