// Reads a JSON text as Python's json.loads does (NaN, Infinity and integers of any length are fine)
// and shows its members as Python's str() would.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace comfyd::engine::nodes {

enum class JsonMember { found, none, missing, not_json, too_deep };

// str() of the top-level member `key`; `none` where it is null, `missing` also where the text holds
// no object. Asks `stopped` now and then; when it says so, the answer does not matter.
JsonMember find_json_member(
    std::string_view text,
    std::string_view key,
    const std::function<bool()>& stopped,
    std::string& shown
);

}  // namespace comfyd::engine::nodes
