// Base64 as tokens have it (RFC 7515): other letters, no padding, and one text for one content:
// bits that are left over must be zero. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace comfyd::auth::jwt {

std::string to_base64url(std::string_view data);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace comfyd::auth::jwt
