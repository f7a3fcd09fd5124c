// Boost.JSON with limits, and typed access that says where a value is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/error.hpp"

namespace comfyd::json {

using boost::json::array;
using boost::json::object;
using boost::json::storage_ptr;
using boost::json::value;

inline constexpr std::size_t kDepthMax = 128;

// Code::malformed_json with line and column. Depth is limited; NaN and Infinity are refused.
Result<value> parse(std::string_view text, storage_ptr storage = {});
// As parse(), and the document must be an object.
Result<object> parse_object(std::string_view text, storage_ptr storage = {});

// Into the place of what is there, with the storage that it was made in: assigning it would copy
// each value into the other's.
void put(object& into, object from) noexcept;

// nullptr when absent or null.
const value* find(const object& in, std::string_view key);

// Typed optional members: nullopt when absent or null, Code::invalid_argument naming `key` when of
// another type. Numbers given as 5.0 are integers too.
Result<std::optional<std::string>> find_string(const object& in, std::string_view key);
Result<std::optional<std::int64_t>> find_int(const object& in, std::string_view key);
Result<std::optional<double>> find_number(const object& in, std::string_view key);
Result<std::optional<bool>> find_bool(const object& in, std::string_view key);
// nullptr when absent or null.
Result<const object*> find_object(const object& in, std::string_view key);
Result<const array*> find_array(const object& in, std::string_view key);

// Without spaces, keys in their order, text as UTF-8. Numbers as people and other languages write
// them: the fewest digits that read back as the same double. A whole double keeps its ".0", so that
// a float of a workflow stays one. Of what JSON has no number for, an infinity is 1e999, which
// reads back as one, and NaN is null.
std::string serialize(const value& from);
std::string serialize(const object& from);
std::string serialize(const array& from);

// As serialize(), with what is not ASCII escaped and without infinities: byte for byte what
// Python's json.dumps(…, separators=(',', ':')) makes of the same document. For bodies that a
// receiver may parse and write again before it checks their signature.
std::string serialize_ascii(const object& from);

// Python's json.dumps with its default settings: ", " and ": " separators, non-ASCII escaped.
// ComfyUI writes prompts into pictures this way.
std::string serialize_python(const value& from);

// The same bytes for equal documents: object keys sorted, no spaces. For fingerprints.
std::string serialize_canonical(const value& from);

// A text as a JSON string.
std::string quoted(std::string_view text);

}  // namespace comfyd::json
