// How the configuration file says that a pool's size follows from what waits.
#pragma once

#include "app/config/yaml_members.hpp"
#include "fleet/instances/pool_settings.hpp"

namespace comfyd::app {

// `size`, or what scales the pool; what is wrong is complained about.
void read_scaling(Members& members, fleet::PoolSettings& pool);

}  // namespace comfyd::app
