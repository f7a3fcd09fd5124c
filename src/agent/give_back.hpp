// A rented machine is given back from within, by the key that its provider puts into it for that
// alone: so that one that everybody has forgotten does not cost for ever. Only those that a comfyd
// ordered, which says where its provider's API is.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/time.hpp"

namespace comfyd::agent {

struct Rented {
    std::string service;
    std::string url;  // of the machine, in the provider's API
    std::string key;
};

// What the environment tells; empty: a variable is not there. nullopt: nobody ordered it, or it is
// given back by the end of its container, as a Pod is.
std::optional<Rented> find_rented(const std::function<std::string(const char* name)>& variable);

// Blocks. Tries some times, with a pause that doubles. When it has worked, this process may be
// killed before it returns.
Result<> give_back(const Rented& rented, const std::string& ca_file, Millis pause = Millis(1'000));

}  // namespace comfyd::agent
