// Members that clients of the execution dialects send, with a meaning that comfyd does not give
// them: the answer says so, instead of passing them over. Pure; any thread.
#pragma once

#include "base/json.hpp"

namespace comfyd::api::execution {

// One warning for each that the request has, in the form of workflow::Fix::to_json() as far as it
// applies.
json::array undone_wishes(const json::object& body);

}  // namespace comfyd::api::execution
