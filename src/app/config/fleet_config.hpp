// What an operator writes of machines that comfyd starts by itself: places that have them
// (`providers`), and pools that are made of them (`pools`).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fleet/instances/pool_settings.hpp"

namespace YAML {
class Node;
}

namespace comfyd::app {

// One place. What its kind understands is the kind's own affair (app/machine_providers.hpp).
struct ProviderSetting {
    std::string name;
    std::string kind;
    // In the kind's own words; lists separated by commas. Those of kProviderSecrets are never
    // shown.
    std::map<std::string, std::string> options{};
};

struct FleetConfig {
    std::vector<ProviderSetting> providers{};
    std::vector<fleet::PoolSettings> pools{};
    autoscale::Budget budget{};  // of all of them together
};

inline constexpr int kPoolSizeMax = 1'000;

// Of the configuration file: `providers` is a map by name, `pools` a list. Code::config_invalid.
Result<> read_providers(const YAML::Node& map, FleetConfig& config);
Result<> read_pool(const YAML::Node& item, FleetConfig& config);

// A provider and a pool from the variables that users of other gateways know: WORKER_MANAGER,
// IMAGE, MIN_WORKERS, MAX_WORKERS, IDLE_TIMEOUT, SCALE_UP_COOLDOWN, PORT_RANGE_START,
// PORT_RANGE_END and NOVITA_…. Nothing happens without WORKER_MANAGER. Code::config_invalid.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Result<> read_fleet_variables(const Environment& environment, FleetConfig& config);

// What must hold between them; `packs_allowed`: of custom nodes. Code::config_invalid.
Result<> check_fleet(const FleetConfig& config, const std::vector<std::string>& packs_allowed);

// The same for pools whose machines can run the same: their template's image, command, variables
// and packs, and the software of places where that is not an image.
std::string software_of(const FleetConfig& config, const fleet::PoolSettings& pool);

// As YAML, secrets masked.
std::string show_fleet(const FleetConfig& config);

}  // namespace comfyd::app
