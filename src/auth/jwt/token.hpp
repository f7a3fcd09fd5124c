// A token taken apart: nothing of it is believed yet. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "auth/jwt/algorithm.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

namespace comfyd::auth::jwt {

inline constexpr std::size_t kTokenBytesMax = 8 * 1024;

struct Token {
    Algorithm algorithm;
    std::string kid{};  // empty: it names no key
    json::object claims;
    std::string_view signed_text;  // of what was parsed
    std::string signature;
};

// Three parts, as RFC 7515 writes them and no other way; keys and addresses in the header are
// passed over. Code::unauthorized.
Result<Token> parse_token(std::string_view text);

// Code::unauthorized, in the words that clients know.
tl::unexpected<Error> invalid_token(std::string_view why);

}  // namespace comfyd::auth::jwt
