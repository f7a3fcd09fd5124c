// Typed access to the members of a saved workflow. Lenient: what is of another type is not there.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/text.hpp"

namespace comfyd::workflow::ui {

inline constexpr std::int64_t kNumericIdMax = 1LL << 53;

// 5 and 5.0.
std::optional<std::int64_t> integer(const json::value* from);
// Empty when absent.
std::string text(const json::object& in, std::string_view key);
// Ids of nodes are numbers or texts.
std::optional<std::string> id_text(const json::value* from);
// Of an input or output.
std::string type_text(const json::object& in);
const json::array* array_at(const json::object& in, std::string_view key);
const json::object* object_at(const json::object& in, std::string_view key);
// A member of "properties"; nullptr: none.
const json::value* property(const json::object& node, std::string_view key);

}  // namespace comfyd::workflow::ui
