// What values hold beside the pixels that count themselves: texts, data, lists, the places of
// views. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine {

// In bytes. NodeFailure (RecursionError) for data that is nested too deep to be walked through.
std::uint64_t weight_of(const json::object& data);
std::uint64_t weight_of(const Value& value);
std::uint64_t weight_of(const std::vector<Value>& values);

}  // namespace comfyd::engine
