// Machines of Salad: containers on other people's computers, in groups of equal ones. A group has
// one name, one set of variables and at most one address for all that are in it, so that none of
// them could be told apart, have a token of its own or be the one that is removed. A machine
// therefore is a group of one; its agent calls us. All of them may be interrupted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct SaladOptions {
    std::string name = "salad";  // the provider's, in the configuration
    std::string key;
    std::string organization;
    std::string project;
    std::string url = "https://api.salad.com/api/public";
    std::string priority = "high";  // high, medium, low, batch: what it costs, and who goes first
    std::vector<std::string> countries{};  // "us", "de"; where an offer names none; empty: any
    int cpus = 4;                          // of machines whose template says nothing, like the next
    int memory_mb = 16'384;
    int disk_gb = 50;
    std::string ca_file{};
};

// Code::config_invalid says which of them is wrong.
Result<> check_salad(const SaladOptions& options);

// `clock` outlives it.
Result<std::unique_ptr<MachineProvider>> make_salad(
    Executor executor, SaladOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
