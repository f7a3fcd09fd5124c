// JSON in which nothing is said twice. Of two members of one name readers take the first, the last
// or both, so what one part has checked another may read differently.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace comfyd::json {

// As parse_object(), and no object in it has two members of one name. Code::malformed_json.
Result<object> parse_unique_object(std::string_view text);

}  // namespace comfyd::json
