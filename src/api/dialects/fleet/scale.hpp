// How many machines the work of a pool wants, for whoever scales by it: KEDA, an HPA, a script.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "jobs/load.hpp"

namespace comfyd::api {

struct ScaleQuestion {
    std::string pool;
    bool has_rest = false;  // jobs that name no pool are this one's
    int slots = 1;          // of a machine, where the pool has none now
    double within_s = 60;   // of GPU time that waits, what one more machine is worth
};

// "machines": as many as hold what runs, and one for each `within_s` of GPU time that waits; never
// more than there are jobs, and one where any waits.
json::object encode_scale(const jobs::Load& load, const ScaleQuestion& question);

// What it costs to give a worker up; the least is to go first. 0: it does not serve. Then come
// those that are idle, by how many waiting jobs need a model which they have loaded; then those at
// work.
int deletion_cost(const jobs::Load::Use& use);

}  // namespace comfyd::api
