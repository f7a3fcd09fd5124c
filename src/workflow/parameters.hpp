// Sets inputs of a workflow by "node.input", where node is an id or a title. Pure.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::workflow {

// {"6.text": "a cat", "KSampler.seed": 7}. Code::invalid_argument lists the names that exist when
// one does not.
Result<> bind_parameters(json::object& workflow, const json::object& parameters);
// One value given as text, for command lines: JSON when it parses as such, else a string.
Result<> bind_parameter(json::object& workflow, std::string_view name, std::string_view value_text);

}  // namespace comfyd::workflow
