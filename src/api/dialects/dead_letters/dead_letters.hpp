// What the files of the dead letters share among themselves.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace comfyd::api::dead_letters {

// The OpenAPI operation with this operationId, and the schemas that operations refer to.
json::object operation(std::string_view operation_id);
json::object schemas();

}  // namespace comfyd::api::dead_letters
