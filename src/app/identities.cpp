#include "app/identities.hpp"

#include <utility>

#include <boost/asio/post.hpp>

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
      } {
    const Config& config = p_.config;
    if (!config.jwt_issuer.empty()) {
        issuer_.emplace(
            p_.executor,
            auth::jwt::IssuerKeys::Options{
                config.jwt_issuer, config.jwt_jwks_url, config.jwt_ca_file
            },
            p_.clock
        );
    }
    if (takes_tokens(config)) {
        tokens_.emplace(token_options(config), issuer_ ? &*issuer_ : nullptr, p_.clock);
    }
    authenticator_ = auth::make_authenticator(
        {book_.directory(), p_.clock, asks_who(config), tokens_ ? &*tokens_ : nullptr}
    );
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
    if (read && asks_who(p_.config) && !tokens_ && !has_keys) {
        log::warning(
            "auth.required is set and there is no key: nobody is let in. Configure an operator's "
            "key (auth.keys, auth.operators), or make one while it is not set"
        );
    }
    co_return read;
}

void Identities::start() {
    book_.start();
    if (issuer_) {
        issuer_->start();
    }
}

Task<> Identities::stop() {
    if (issuer_) {
        co_await issuer_->stop();
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
