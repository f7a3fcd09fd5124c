// ComfyUI's description of every class that the engine runs: nodes/schema.json, compiled in.
#pragma once

#include "base/json.hpp"

namespace comfyd::engine {

// Class name to its /object_info entry, without the description. Any thread.
const json::object& node_schema();

}  // namespace comfyd::engine
