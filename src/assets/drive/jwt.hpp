// Signed statements (JSON Web Tokens), by which a service account proves to Google who it is. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::assets::drive {

// header.claims.signature, by RS256. `private_key`: PEM. Code::config_invalid when it is no key.
Result<std::string> make_jwt(
    const json::object& header, const json::object& claims, std::string_view private_key
);

}  // namespace comfyd::assets::drive
