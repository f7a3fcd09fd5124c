#include "auth/authenticator.hpp"

#include <utility>

#include "auth/keys.hpp"
#include "base/crypto.hpp"

namespace comfyd::auth {

std::string hash_key(std::string_view key) {
    return to_hex(sha256(key));
}

std::unique_ptr<Authenticator> make_authenticator(AuthOptions options) {
    return std::make_unique<Keys>(std::move(options.keys));
}

}  // namespace comfyd::auth
