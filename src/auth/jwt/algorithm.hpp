// The signatures that are accepted. What is not here does not exist: "none" least of all. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace comfyd::auth::jwt {

enum class Algorithm { hs256, rs256, es256, es384, es512, eddsa };

// Exactly as RFC 7518 and RFC 8037 write it.
inline std::optional<Algorithm> parse_algorithm(std::string_view name) {
    return name == "HS256"   ? std::optional(Algorithm::hs256)
           : name == "RS256" ? std::optional(Algorithm::rs256)
           : name == "ES256" ? std::optional(Algorithm::es256)
           : name == "ES384" ? std::optional(Algorithm::es384)
           : name == "ES512" ? std::optional(Algorithm::es512)
           : name == "EdDSA" ? std::optional(Algorithm::eddsa)
                             : std::nullopt;
}

}  // namespace comfyd::auth::jwt
