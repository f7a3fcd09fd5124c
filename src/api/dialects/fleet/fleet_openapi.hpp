// What /openapi.json says about machines.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace comfyd::api {

// An operation from a literal with short forms: "requestBody": "Schema"; "responses": {"200":
// ["What.", "Schema"]}, or without a schema where it is a refusal.
json::object fleet_operation(std::string_view id, std::string_view tag, std::string_view text);
json::object fleet_schemas();
json::object gpu_schemas();
json::object scale_schemas();

}  // namespace comfyd::api
