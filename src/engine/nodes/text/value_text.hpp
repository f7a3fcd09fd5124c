// Python's str() of any value, with the numbers of pictures and the like. Pure; any thread.
#pragma once

#include <string>

#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

// Pictures that do not lie in one piece are "<IMAGE>".
std::string value_text(const Value& value);

}  // namespace comfyd::engine::nodes
