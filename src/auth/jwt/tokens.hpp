// Tokens that a client shows in place of a key (RFC 7519): of one secret that is known here
// (HS256), or of an issuer whose public keys are fetched. What was found good is remembered by the
// hash of the token until it ends, so that a signature is checked once. Any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "auth/authenticator.hpp"
#include "auth/jwt/claims.hpp"
#include "auth/jwt/issuer_keys.hpp"
#include "auth/jwt/token.hpp"
#include "base/crypto.hpp"
#include "base/lru_map.hpp"
#include "base/mutex.hpp"

namespace comfyd::auth {

// Three parts with dots between; no key of the configuration is asked about by it.
bool looks_like_token(std::string_view credential);

class Tokens {
public:
    struct Options {
        std::string secret{};  // of HS256, at least kSecretBytesMin; empty: no such tokens
        jwt::ClaimRules claims{};
    };
    static constexpr std::size_t kSecretBytesMin = 32;

    // `issuer` may be nullptr: then the secret alone makes tokens. Both outlive it.
    Tokens(Options options, jwt::IssuerKeys* issuer, Clock& clock);

    // `digest`: its SHA-256. Code::unauthorized; Code::upstream_error when the issuer's keys were
    // never had.
    Task<Result<Caller>> verify(std::string_view token, Digest digest) const;

private:
    struct Remembered {
        Caller caller;
        Time good_until;
        std::uint64_t key_version = 0;
    };
    struct Shelf {
        Mutex mutex;
        LruMap<Remembered> tokens COMFYD_GUARDED_BY(mutex){kPerShelf};
    };
    static constexpr std::size_t kShelves = 16;
    static constexpr std::size_t kPerShelf = 512;

    Task<Result<>> check_signature(const jwt::Token& token) const;
    std::uint64_t key_version() const;

    const Options options_;
    jwt::IssuerKeys* issuer_;
    Clock& clock_;
    mutable std::array<Shelf, kShelves> shelves_;
};

}  // namespace comfyd::auth
