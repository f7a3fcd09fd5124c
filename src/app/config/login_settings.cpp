#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> login_settings() {
    return {
        text(
            "login.issuer",
            "OpenID provider by which browsers log in, beside API keys; needs public_url.",
            &Config::login_issuer
        ),
        text(
            "login.client_id",
            "As which the provider knows comfyd; for whom its ID tokens must be made.",
            &Config::login_client_id
        ),
        secret(
            "login.client_secret",
            "What the provider has given with it; empty: it is a public client.",
            &Config::login_client_secret
        ),
        text(
            "login.scopes",
            "What is asked of the provider, with spaces between; openid among it.",
            &Config::login_scopes
        ),
        text(
            "login.tenant_claim",
            "Claim of ID tokens that names the tenant; empty: as jwt.tenant_claim.",
            &Config::login_tenant_claim
        ),
        text(
            "login.scope_claim",
            "Claim of ID tokens with the scopes; empty: as jwt.scope_claim.",
            &Config::login_scope_claim
        ),
        text(
            "login.ca_file",
            "PEM file with further certificate authorities for it; empty: as jwt.ca_file.",
            &Config::login_ca_file
        ),
    };
}

}  // namespace comfyd::app
