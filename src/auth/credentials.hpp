// Who shows what: "Bearer" and an API key, of the configuration or of the ledger, or a token of an
// issuer. For a key it takes one hash and one look into the directory; nothing is written but, once
// a minute, when the key was used. Any thread.
#pragma once

#include <string_view>

#include "auth/authenticator.hpp"
#include "auth/directory.hpp"
#include "auth/jwt/tokens.hpp"

namespace comfyd::auth {

class Credentials final : public Authenticator {
public:
    explicit Credentials(const AuthOptions& options) : options_(options) {}

    bool required() const override { return options_.required; }
    // Waits for nothing but the issuer of a token.
    Task<Result<Caller>> authenticate(std::string_view authorization) const override;

private:
    const AuthOptions options_;
};

}  // namespace comfyd::auth
