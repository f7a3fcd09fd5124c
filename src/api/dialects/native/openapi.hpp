// What the OpenAPI document says of ComfyUI's own routes. Pure; any thread.
#pragma once

#include <string>

#include "base/json.hpp"
#include "net/http.hpp"

namespace comfyd::api::native {

// Empty for a route that only the editor needs, and for the same route below /api.
json::object document_route(net::Method method, const std::string& pattern);
json::object schemas();

}  // namespace comfyd::api::native
