// Which workers a caller may see: a tenant that is limited to some pools learns nothing of others.
#pragma once

#include <string>
#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {

// An operator's are all.
bool is_pool_for(const Call& call, const Services& services, const std::string& pool);

// Those of pools that are for the caller, and the engine, which is in none.
Task<std::vector<jobs::WorkerInfo>> visible_workers(const Call& call, const Services& services);

}  // namespace comfyd::api
