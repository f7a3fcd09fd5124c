// The places that machines are had from, as the configuration names them: one table of the kinds
// that there are. A new kind is a class in fleet/providers and its row in the table.
#pragma once

#include <filesystem>

#include "app/config/config.hpp"
#include "base/pool.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::app {

// What a provider may need of its surroundings, all of which outlive it.
struct MachineProviderParts {
    Executor core;  // that it lives on
    const Clock& clock;
    Pool& pool;
    const Config& config;
    std::filesystem::path data;  // the folder of this server
};

// All that are named. Code::config_invalid: a kind that there is not, or settings that it refuses.
Result<fleet::MachineProviders> make_machine_providers(const MachineProviderParts& parts);

}  // namespace comfyd::app
