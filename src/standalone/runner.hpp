// Runs the prompts of the queue, one after the other.
#pragma once

#include "base/task.hpp"
#include "standalone/core.hpp"

namespace comfyd::standalone {

// Until its task is cancelled; what runs then is interrupted by whoever cancels. `core` outlives
// it.
Task<> run_prompts(Core& core);

}  // namespace comfyd::standalone
