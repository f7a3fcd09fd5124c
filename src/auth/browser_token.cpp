#include "auth/browser_token.hpp"

#include <array>

#include "auth/api_key.hpp"
#include "auth/jwt/base64url.hpp"
#include "base/crypto.hpp"

namespace comfyd::auth {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kIdSize = 2 * kKeyIdSize;

}  // namespace

std::string make_secret_text() {
    std::array<char, kSecretBytes> secret{};
    random_bytes(secret.data(), secret.size());
    return jwt::to_base64url({secret.data(), secret.size()});
}

std::string make_browser_token() {
    return make_key_id() + make_key_id() + '.' + make_secret_text();
}

std::optional<std::string> id_of_browser_token(std::string_view token) {
    if (token.size() <= kIdSize || token[kIdSize] != '.' ||
        !is_key_id(token.substr(0, kKeyIdSize)) ||
        !is_key_id(token.substr(kKeyIdSize, kKeyIdSize))) {
        return std::nullopt;
    }
    const auto secret = jwt::from_base64url(token.substr(kIdSize + 1));
    return secret && secret->size() == kSecretBytes
               ? std::optional(std::string(token.substr(0, kIdSize)))
               : std::nullopt;
}

}  // namespace comfyd::auth
