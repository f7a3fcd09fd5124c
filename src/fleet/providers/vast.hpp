// Machines of Vast.ai, a market of other people's computers, by version 0 of its API (version 1 of
// its list). An offer makes one machine and is gone then; spot machines are bid for. A machine has
// ports on an address that it shares with others, without TLS: so its agent calls us, unless the
// operator wants its address to be used.
#pragma once

#include <memory>
#include <string>

#include "fleet/providers/machines.hpp"

namespace comfyd::fleet {

struct VastOptions {
    std::string name = "vast";  // the provider's, in the configuration
    std::string key;
    std::string url = "https://console.vast.ai/api";
    bool dials_in = true;           // false: agents are called at http://{address}:{port}
    int disk_gb = 60;               // of machines whose template says nothing, and of offers
    double reliability_min = 0.95;  // of the computer, as Vast has seen it
    std::string cuda_min{};         // "12.8"
    double bid_factor = 1.1;        // what a spot machine is bid for, of the least that wins now
    std::string ca_file{};
    // It wants so much time between two requests of one kind, and says so only by refusing.
    Millis create_gap{5'000};
    Millis remove_gap{3'000};
    Millis other_gap{2'000};
    Millis log_pause{1'000};  // between looks at a log that it makes ready
};

// Code::config_invalid says which of them is wrong.
Result<> check_vast(const VastOptions& options);

// `clock` outlives it.
Result<std::unique_ptr<MachineProvider>> make_vast(
    Executor executor, VastOptions options, const Clock& clock
);

}  // namespace comfyd::fleet
