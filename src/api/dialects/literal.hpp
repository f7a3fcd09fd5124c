// JSON written in the source, for the parts of the OpenAPI document. A literal that does not parse
// is a programmer error.
#pragma once

#include <string_view>

#include "base/assert.hpp"
#include "base/json.hpp"

namespace comfyd::api {

inline json::object literal(std::string_view text) {
    auto parsed = json::parse_object(text);
    COMFYD_ASSERT(parsed.has_value());
    return std::move(*parsed);
}

}  // namespace comfyd::api
