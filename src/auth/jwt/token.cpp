#include "auth/jwt/token.hpp"

#include <optional>
#include <utility>

#include "auth/jwt/base64url.hpp"
#include "base/json_unique.hpp"
#include "base/text.hpp"

namespace comfyd::auth::jwt {
namespace {

constexpr std::size_t kKidBytesMax = 256;

Result<json::object> read_part(std::string_view text, const char* what) {
    const auto bytes = from_base64url(text);
    if (!bytes) {
        return invalid_token(std::string(what) + " is not base64url without padding");
    }
    auto read = json::parse_unique_object(*bytes);
    if (!read) {
        return invalid_token(std::string(what) + " is not JSON, or says something twice");
    }
    return read;
}

// What RFC 9068 and everybody else write there; an encrypted or nested token is none of these.
bool is_known_type(std::string_view type) {
    const std::string word = lower(type);
    return word == "jwt" || word == "at+jwt" || word == "application/at+jwt";
}

Result<Token> read_header(const json::object& header) {
    Token token{};
    const auto* algorithm = header.if_contains("alg");
    const auto known = algorithm != nullptr && algorithm->is_string()
                           ? parse_algorithm(view(algorithm->get_string()))
                           : std::nullopt;
    if (!known) {
        return invalid_token("its algorithm is not accepted");
    }
    token.algorithm = *known;
    if (header.contains("crit") || header.contains("b64") || header.contains("zip")) {
        return invalid_token("its header demands what this server does not do");
    }
    if (const auto* type = header.if_contains("typ")) {
        if (!type->is_string() || !is_known_type(view(type->get_string()))) {
            return invalid_token("it is of another type");
        }
    }
    if (const auto* kid = header.if_contains("kid")) {
        if (!kid->is_string() || kid->get_string().empty() ||
            kid->get_string().size() > kKidBytesMax) {
            return invalid_token("its 'kid' is no name of a key");
        }
        token.kid = view(kid->get_string());
    }
    return token;
}

}  // namespace

tl::unexpected<Error> invalid_token(std::string_view why) {
    return fail(Code::unauthorized, "Invalid token: " + std::string(why));
}

Result<Token> parse_token(std::string_view text) {
    if (text.size() > kTokenBytesMax) {
        return invalid_token("it is too long");
    }
    const auto first = text.find('.');
    const auto second = first == std::string_view::npos ? first : text.find('.', first + 1);
    if (second == std::string_view::npos || text.find('.', second + 1) != std::string_view::npos ||
        first == 0 || second == first + 1 || second + 1 == text.size()) {
        return invalid_token("it has not three parts");
    }
    const auto header = read_part(text.substr(0, first), "its header");
    auto token = header ? read_header(*header) : fail(header.error());
    if (!token) {
        return token;
    }
    auto claims = read_part(text.substr(first + 1, second - first - 1), "its claims part");
    if (!claims) {
        return fail(std::move(claims.error()));
    }
    auto signature = from_base64url(text.substr(second + 1));
    if (!signature) {
        return invalid_token("its signature is not base64url without padding");
    }
    token->claims = std::move(*claims);
    token->signed_text = text.substr(0, second);
    token->signature = std::move(*signature);
    return token;
}

}  // namespace comfyd::auth::jwt
