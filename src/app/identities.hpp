// Who may do what, as the program has it: the book of tenants and keys, the issuer of tokens, the
// authenticator over both, the sessions of browsers, and those who are told when a tenant changes.
// Owned by the application.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "admission/tenant_rules.hpp"
#include "api/dialects/identity/identity.hpp"
#include "api/dialects/login/login.hpp"
#include "app/cluster_node.hpp"
#include "app/config/config.hpp"
#include "auth/authenticator.hpp"
#include "auth/identity_book.hpp"
#include "auth/jwt/tokens.hpp"
#include "auth/oidc/code_flow.hpp"
#include "auth/sessions.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {

class Identities {
public:
    // All outlive it.
    struct Parts {
        Executor executor;  // on which it looks for changes, and asks the issuer
        Executor core;
        Clock& clock;
        auth::IdentityStore& store;
        auth::SessionStore& sessions;
        const Config& config;
    };
    explicit Identities(const Parts& parts);

    const auth::Authenticator& authenticator() const { return *authenticator_; }
    const api::IdentityServices& services() const { return services_; }
    const api::LoginServices& login() const { return login_; }
    // Who holds up addresses that show wrong keys; outlives it.
    void set_addresses(limits::AddressGuard& guard) { login_.addresses = &guard; }
    // nullptr: browsers cannot log in here.
    const auth::Sessions* sessions() const { return login_.sessions; }

    // Before open(): what tenants may do stands in the table from then on; where there are other
    // nodes, they are told of changes and heard.
    // `changed` is told of every change, on whichever thread reads it.
    void keep(
        std::shared_ptr<admission::TenantTable> table,
        ClusterNode* node,
        std::function<void()> changed
    );
    const auth::DirectoryBoard& directory() const { return book_.directory(); }
    // Reads what the ledger has.
    Task<Result<>> open();
    // On its executor.
    void start();
    Task<> stop();

    void collect(observe::Metrics::Gauges& gauges) const;

private:
    void make_login();

    Parts p_;
    auth::IdentityBook book_;
    std::optional<auth::jwt::IssuerKeys> issuer_;
    std::optional<auth::Tokens> tokens_;
    std::unique_ptr<auth::Authenticator> authenticator_;
    api::IdentityServices services_;
    std::optional<auth::jwt::IssuerKeys> login_issuer_;  // where it is another one
    std::optional<auth::oidc::CodeFlow> provider_;
    std::optional<auth::Sessions> sessions_;
    api::LoginServices login_;
};

}  // namespace comfyd::app
