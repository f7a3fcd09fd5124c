#include "app/identities.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "app/breakers.hpp"
#include "app/config/part_options.hpp"
#include "base/log.hpp"

namespace comfyd::app {

Identities::Identities(const Parts& parts)
    : p_(parts),
      book_(p_.executor, {api_keys(p_.config), p_.config.tenants}, p_.clock, p_.store),
      services_{
          book_,
          p_.clock,
          asks_who(p_.config),
          [config = p_.config](const auth::Tenant& tenant) { return check_tenant(config, tenant); }
      },
      login_{nullptr, nullptr, asks_who(p_.config)} {
    const Config& config = p_.config;
    if (!config.jwt_issuer.empty()) {
        issuer_.emplace(
            p_.executor,
            auth::jwt::IssuerKeys::Options{
                config.jwt_issuer, config.jwt_jwks_url, config.jwt_ca_file
            }
        );
    }
    if (takes_tokens(config)) {
        tokens_.emplace(token_options(config), issuer_ ? &*issuer_ : nullptr, p_.clock);
    }
    authenticator_ = auth::make_authenticator(
        {book_.directory(), p_.clock, asks_who(config), tokens_ ? &*tokens_ : nullptr}
    );
    make_login();
}

void Identities::make_login() {
    const Config& config = p_.config;
    auto cookies = cookie_options(config);
    if (!cookies) {
        return;
    }
    sessions_.emplace(
        auth::Sessions::Options{std::move(*cookies), config.login_issuer},
        p_.sessions,
        book_.directory(),
        p_.clock
    );
    login_.sessions = &*sessions_;
    if (config.login_issuer.empty()) {
        return;
    }
    auto options = code_flow_options(config);
    const bool is_same = issuer_ && config.login_issuer == config.jwt_issuer;
    if (!is_same) {
        auth::jwt::IssuerKeys::Options keys{config.login_issuer, "", options.ca_file};
        keys.name = "login";
        login_issuer_.emplace(p_.executor, std::move(keys));
    }
    provider_.emplace(
        p_.executor, std::move(options), is_same ? *issuer_ : *login_issuer_, p_.sessions, p_.clock
    );
    login_.provider = &*provider_;
}

void Identities::keep(
    std::shared_ptr<admission::TenantTable> table, ClusterNode* node, std::function<void()> changed
) {
    auth::IdentityBook::Listener listener;
    listener.changed = [config = p_.config,
                        table = std::move(table),
                        changed = std::move(changed)](const auth::Directory& directory) {
        table->set(tenant_rules(config, directory));
        changed();
    };
    if (node != nullptr) {
        listener.saved = [node, core = p_.core] {
            boost::asio::post(core, [node] {
                node->mail().tell_all(cluster::IdentitiesChanged{});
            });
        };
        node->mail().on<cluster::IdentitiesChanged>([this](NodeId, cluster::IdentitiesChanged) {
            book_.wake();
        });
    }
    book_.listen(std::move(listener));
}

Task<Result<>> Identities::open() {
    auto read = co_await book_.refresh();
    const auto directory = book_.directory().now();
    const bool has_keys = !directory->keys().empty() || !directory->configured_keys().empty();
    if (read && asks_who(p_.config) && !tokens_ && !provider_ && !has_keys) {
        log::warning(
            "auth.required is set and there is no key: nobody is let in. Configure an operator's "
            "key (auth.keys, auth.operators), or make one while it is not set"
        );
    }
    co_return read;
}

void Identities::start() {
    book_.start();
    for (auto* issuer : {&issuer_, &login_issuer_}) {
        if (*issuer) {
            (*issuer)->start();
        }
    }
}

Task<> Identities::stop() {
    for (auto* issuer : {&issuer_, &login_issuer_}) {
        if (*issuer) {
            co_await (*issuer)->stop();
        }
    }
    co_await book_.stop();
}

void Identities::collect(observe::Metrics::Gauges& gauges) const {
    const auto directory = book_.directory().now();
    gauges.set(
        "comfyd_api_keys",
        "API keys that were made at run time, revoked ones too.",
        {},
        static_cast<double>(directory->keys().size())
    );
    for (const auto* issuer : {&issuer_, &login_issuer_}) {
        if (*issuer) {
            show_breaker((*issuer)->itself(), gauges);
        }
    }
    if (issuer_) {
        const auto counts = issuer_->counts();
        gauges.set(
            "comfyd_issuer_key_fetches",
            "Times that the keys of the issuer of tokens were asked for, since start.",
            {},
            static_cast<double>(counts.fetches)
        );
        gauges.set(
            "comfyd_issuer_key_fetches_failed",
            "Those that failed; the keys of before stay good for a day.",
            {},
            static_cast<double>(counts.failures)
        );
    }
}

}  // namespace comfyd::app
