// How much a document weighs, for limits on what may wait in memory.
#pragma once

#include <cstddef>

#include "base/json.hpp"

namespace comfyd::json {

// About the size of its text.
std::size_t weight(const value& of);
std::size_t weight(const object& of);

}  // namespace comfyd::json
