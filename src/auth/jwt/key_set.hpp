// The public keys of an issuer, read from its JWK set (RFC 7517), and what they sign. A key belongs
// to one algorithm; whatever a token asks for, no other is tried with it. Secret keys of a set are
// passed over, as are those that are too weak to prove anything. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/jwt/algorithm.hpp"
#include "base/error.hpp"

typedef struct evp_pkey_st EVP_PKEY;

namespace comfyd::auth::jwt {

class PublicKey {
public:
    PublicKey(std::string kid, Algorithm algorithm, std::shared_ptr<EVP_PKEY> key)
        : kid_(std::move(kid)), algorithm_(algorithm), key_(std::move(key)) {}

    const std::string& kid() const { return kid_; }
    Algorithm algorithm() const { return algorithm_; }
    bool has_signed(std::string_view text, std::string_view signature) const;

private:
    std::string kid_;
    Algorithm algorithm_;
    std::shared_ptr<EVP_PKEY> key_;
};

class KeySet {
public:
    KeySet() = default;
    // {"keys": [...]}; keys that cannot be used are left out. Code::protocol_error.
    static Result<KeySet> parse(std::string_view document);

    // The one that is meant: by its name, or where a token names none the only one of the
    // algorithm. nullptr: there is none, or it is not clear which.
    const PublicKey* find(std::string_view kid, Algorithm algorithm) const;
    std::size_t size() const { return keys_.size(); }

private:
    std::vector<PublicKey> keys_;
};

}  // namespace comfyd::auth::jwt
