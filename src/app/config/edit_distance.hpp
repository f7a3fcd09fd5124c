// How far a word is from one that is known, for "did you mean …?". Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace comfyd::app {

// The least number of characters to be inserted, left out or replaced.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace comfyd::app
