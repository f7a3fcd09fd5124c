// The OpenAPI 3.0.3 document of a route table. Pure.
#pragma once

#include "api/route_table.hpp"
#include "base/json.hpp"

namespace comfyd::api {

json::object make_openapi(const RouteTable& table, const json::object& schemas, bool keys_required);

}  // namespace comfyd::api
