// Values of the engine as Python objects: how they are shown and tested.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/node.hpp"
#include "engine/values/value.hpp"

namespace comfyd::engine::nodes {

// Texts that nodes make may have this many bytes.
inline constexpr std::size_t kTextBytesMax = 64 * 1024 * 1024;

// Python's MemoryError, where a text would be longer than that.
tl::unexpected<Error> text_too_long();
// Room for a text of so many bytes, asked for before it is made.
Result<Charge> room_for_text(const Call& call, std::uint64_t bytes);

// What data takes for each byte of the JSON text that it is read from, at most.
inline constexpr std::uint64_t kJsonBytesPerByte = 32;

// The value as JSON; nullopt for pictures, masks and objects.
std::optional<json::value> to_json(const Value& value);
// The other way; arrays and objects are Data.
Value from_json(const json::value& from);

// str() and repr(); pictures and the like as "<IMAGE>".
std::string python_str(const Value& value);
std::string python_repr(const Value& value);
std::string_view python_type(const Value& value);
// bool(); nullopt where Python cannot tell (a picture of more than one value).
std::optional<bool> python_bool(const Value& value);

// json.dumps(value, indent=..., ensure_ascii=False); compact where `indent` is 0.
std::string dump_json(const json::value& value, int indent);

}  // namespace comfyd::engine::nodes
