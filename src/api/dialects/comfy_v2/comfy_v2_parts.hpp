// What the files of the Comfy API v2 dialect share among themselves.
#pragma once

#include <string_view>

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api::v2 {

void add_asset_routes(Router& router, const Services& services);

// The OpenAPI operation with this operationId, and the schemas that operations refer to.
json::object operation(std::string_view operation_id);
json::object schemas();

Task<> refuse(Call& call, Error error);
Task<> answer(Call& call, int status, json::object body);

}  // namespace comfyd::api::v2
