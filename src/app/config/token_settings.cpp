#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> token_settings() {
    return {
        secret(
            "jwt.secret",
            "Secret of tokens by HS256, of 32 bytes or more; empty: none are accepted.",
            &Config::jwt_secret
        ),
        text(
            "jwt.issuer",
            "Whose tokens are accepted (iss, byte for byte); its public keys are fetched.",
            &Config::jwt_issuer
        ),
        text(
            "jwt.audience",
            "For whom tokens must be made (aud); needed with an issuer.",
            &Config::jwt_audience
        ),
        text(
            "jwt.jwks_url",
            "Where the issuer's keys are; empty: as its openid-configuration says.",
            &Config::jwt_jwks_url
        ),
        text(
            "jwt.ca_file",
            "PEM file with further certificate authorities for the issuer.",
            &Config::jwt_ca_file
        ),
        text(
            "jwt.tenant_claim",
            "Claim that names the tenant; empty: user_id, or else sub.",
            &Config::jwt_tenant_claim
        ),
        text(
            "jwt.scope_claim",
            "Claim with the scopes; empty: permissions, or else scope.",
            &Config::jwt_scope_claim
        ),
        number(
            "jwt.leeway_s",
            "Seconds by which the clock of the issuer may differ.",
            &Config::jwt_leeway_s,
            0,
            300
        ),
        flag("jwt.require_exp", "Refuse tokens that never end.", &Config::jwt_require_exp),
    };
}

}  // namespace comfyd::app
