#include "app/config/part_options.hpp"

#include <algorithm>
#include <chrono>

#include "app/config/serving.hpp"
#include "app/data_folder.hpp"
#include "auth/oidc/discovery.hpp"
#include "workflow/catalogue/model_sizes.hpp"

namespace comfyd::app {
namespace {

// Within this time jobs that can be merged belong to one burst.
constexpr Millis kGather{15};

}  // namespace

Millis kept_for(const Config& config) {
    using Days = std::chrono::duration<double, std::ratio<86'400>>;
    return std::chrono::round<Millis>(Days(config.retention_days));
}

std::string ledger_url(const Config& config) {
    return is_clustered(config)
               ? config.ledger
               : "sqlite:" + (std::filesystem::path(config.data) / kDatabaseFile).string();
}

assets::StoreOptions store_options(const Config& config) {
    assets::StoreOptions options;
    options.directory = std::filesystem::path(files_folder(config)) / kAssetsFolder;
    options.is_shared = is_clustered(config);
    options.young = std::min(options.young, kept_for(config));
    options.blob_bytes_max = static_cast<std::uint64_t>(config.upload_mb_max) << 20;
    options.retention = retention_rules(config);
    return options;
}

Result<assets::BlobStores> make_stores(const Config& config, Clock& clock, Pool& pool) {
    assets::BlobStores stores;
    for (const assets::StoreSetting& setting : config.stores) {
        auto made = assets::make_blob_store(setting, clock, pool);
        if (!made) {
            return fail(std::move(made.error()));
        }
        stores.add(setting.name, std::move(*made));
    }
    return stores;
}

Result<WatchedStores> make_watched_stores(const Config& config, Clock& clock, Pool& pool) {
    WatchedStores stores;
    for (const assets::StoreSetting& setting : config.stores) {
        auto made = assets::make_blob_store(setting, clock, pool);
        if (!made) {
            return fail(std::move(made.error()));
        }
        if (setting.provider == "folder") {  // it is asked for nothing that takes long
            stores.all.add(setting.name, std::move(*made));
            continue;
        }
        auto watched = std::make_unique<assets::BreakerStore>(setting.name, std::move(*made));
        stores.elsewhere.push_back(watched.get());
        stores.all.add(setting.name, std::move(watched));
    }
    return stores;
}

fleet::WorkerConfig worker_config(const Config& config, const WorkerSetting& worker) {
    fleet::WorkerConfig made{worker.id, worker.url};
    made.gpu_second_usd = worker.gpu_second_usd.value_or(config.gpu_second_usd);
    made.gpu = worker.gpu;
    made.slots = worker.slots;
    made.pool = worker.pool;
    made.region = worker.region;
    made.model_memory_bytes = worker.model_memory_bytes;
    made.token = worker.token;
    return made;
}

// One setting, the pace of looking at workers, moves the whole family of intervals.
fleet::FleetOptions fleet_options(const Config& config, const fleet::TenantFolders& folders) {
    fleet::FleetOptions options;
    options.folders = folders;
    options.offload = config.engine_offload;
    const Millis pace(config.worker_poll_ms);
    options.poll_interval = pace;
    options.poll_interval_slow = 5 * pace;
    options.settle = pace;
    options.health_interval = 5 * pace;
    options.health_retry = pace;
    options.busy_look = 3 * pace;
    options.backoff_min = pace / 2;
    options.reconnect_delay = pace / 2;
    options.lost_after = std::chrono::seconds(config.worker_lost_after_s);
    options.dead_after = std::chrono::seconds(config.worker_dead_after_s);
    options.silent_after = std::chrono::seconds(config.worker_silent_after_s);
    options.breaker.failures = config.breaker_failures;
    options.breaker.open_first = std::chrono::seconds(config.breaker_open_s);
    options.breaker.open_max = 10 * options.breaker.open_first;
    options.refused_span = std::min(options.refused_span, options.lost_after);
    return options;
}

jobs::ServiceOptions service_options(const Config& config) {
    jobs::ServiceOptions options;
    options.queue_max = static_cast<std::size_t>(config.queue_max);
    options.scheduling.policy = config.scheduler_policy;
    options.scheduling.merge_max = config.scheduler_merge_max;
    options.scheduling.gather = kGather;
    options.classify = config.scheduler_classify;
    options.failures = config.failures;
    options.failures.poison_workers = config.poison_workers;
    options.failures.timeout_growth = config.timeout_factor;
    options.failures.budget = {config.retry_percent / 100, config.retries_per_minute};
    for (const std::string& pool : pools_of(config)) {
        options.domains[pool] = domain_of(config, pool);
    }
    return options;
}

notify::ChannelOptions channel_options(const Config& config) {
    notify::ChannelOptions options;
    options.webhook.allow_private_addresses = config.webhooks_allow_private;
    options.webhook.allow_unverified_tls = config.webhooks_allow_unverified_tls;
    options.webhook.ca_file = config.webhooks_ca_file;
    options.webhook.attempt_timeout = std::chrono::seconds(config.webhooks_timeout_s);
    options.mail = mail_senders(config.notify);
    options.sms = sms_senders(config.notify);
    return options;
}

notify::NotifierOptions notifier_options(const Config& config) {
    notify::NotifierOptions options;
    options.first_retry = Millis(config.webhooks_first_retry_ms);
    options.give_up_after = std::chrono::hours(config.webhooks_give_up_h);
    return options;
}

bulk::KeeperOptions keeper_options(const Config& config) {
    bulk::KeeperOptions options;
    options.kept_for = kept_for(config);
    options.tender.in_flight_max = config.batches_in_flight;
    options.tender.telling.first_retry = Millis(config.webhooks_first_retry_ms);
    options.tender.telling.give_up_after = std::chrono::hours(config.webhooks_give_up_h);
    return options;
}

namespace {

admission::KeepingRules keeping_rules(const Config& config) {
    admission::KeepingRules rules;
    for (const assets::StoreSetting& store : config.stores) {
        const auto bucket = store.options.find("bucket");
        rules.stores[store.name] = {
            store.provider,
            bucket == store.options.end() ? std::string() : bucket->second,
            {store.tenants.begin(), store.tenants.end()}
        };
    }
    rules.store = config.results_store;
    rules.retention = config.results_retention;
    rules.lives = retention_rules(config);
    rules.allows_answers = config.results_inline_kb > 0;
    return rules;
}

}  // namespace

admission::TenantTable::Rules tenant_rules(const Config& config, const auth::Directory& directory) {
    admission::TenantTable::Rules table;
    for (const auto& [name, tenant] : directory.tenants()) {
        admission::TenantRules& rules = table[name];
        rules.security = security_policy(config, tenant);
        rules.reuse = tenant.reuse;
        rules.pools = {tenant.allowed_pools.begin(), tenant.allowed_pools.end()};
        const bool has_none = tenant.pool.empty() && !tenant.allowed_pools.empty();
        rules.pool = has_none ? tenant.allowed_pools.front() : tenant.pool;
        rules.store = tenant.store;
        rules.stores = {tenant.allowed_stores.begin(), tenant.allowed_stores.end()};
        rules.retention = assets::parse_retention_class(tenant.retention);
    }
    return table;
}

auth::Tokens::Options token_options(const Config& config) {
    auth::Tokens::Options options;
    options.secret = config.jwt_secret;
    options.claims.issuer = config.jwt_issuer;
    options.claims.audience = config.jwt_audience;
    options.claims.tenant_claim = config.jwt_tenant_claim;
    options.claims.scope_claim = config.jwt_scope_claim;
    options.claims.leeway = std::chrono::seconds(config.jwt_leeway_s);
    options.claims.require_expiry = config.jwt_require_exp;
    return options;
}

Result<std::vector<net::ClientIdentity>> worker_identities(const Config& config) {
    std::vector<net::ClientIdentity> identities;
    for (const WorkerSetting& worker : config.workers) {
        const bool is_own = !worker.certificate.empty() || !worker.key.empty();
        net::ClientIdentity identity{
            worker.url,
            is_own ? worker.certificate : config.fleet_certificate,
            is_own ? worker.key : config.fleet_key,
            worker.ca_file.empty() ? config.fleet_ca_file : worker.ca_file,
            worker.tls_name,
        };
        if (identity.certificate.empty() != identity.key.empty()) {
            return fail(
                Code::config_invalid,
                "a certificate and its key are set both or not at all: of the worker " +
                    worker.url + ", or 'fleet.certificate' and 'fleet.key'"
            );
        }
        const bool is_any = !identity.certificate.empty() || !identity.ca_file.empty() ||
                            !identity.server_name.empty();
        if (is_any && worker.url.starts_with("https://")) {
            identities.push_back(std::move(identity));
        }
    }
    return identities;
}

std::optional<auth::SessionCookies::Options> cookie_options(const Config& config) {
    const auto endpoint = net::Endpoint::parse(config.listen);
    const bool is_here = config.public_url.empty() ? endpoint && endpoint->is_loopback()
                                                   : auth::oidc::is_safe_address(config.public_url);
    const bool is_https = config.public_url.empty() ? !config.tls_certificate.empty()
                                                    : config.public_url.starts_with("https://");
    if (!is_https && !is_here) {
        return std::nullopt;
    }
    return auth::SessionCookies::Options{is_https, public_origin(config)};
}

auth::oidc::CodeFlow::Options code_flow_options(const Config& config) {
    const auto either = [](const std::string& own, const std::string& of_tokens) {
        return own.empty() ? of_tokens : own;
    };
    std::string url = config.public_url;
    while (url.ends_with('/')) {
        url.pop_back();
    }
    auth::oidc::CodeFlow::Options options;
    options.client_id = config.login_client_id;
    options.client_secret = config.login_client_secret;
    options.scopes = config.login_scopes;
    options.return_url = url + "/login/callback";
    options.after_logout_url = url + "/login";
    options.ca_file = either(config.login_ca_file, config.jwt_ca_file);
    options.claims.issuer = config.login_issuer;
    options.claims.audience = config.login_client_id;
    options.claims.tenant_claim = either(config.login_tenant_claim, config.jwt_tenant_claim);
    options.claims.scope_claim = either(config.login_scope_claim, config.jwt_scope_claim);
    options.claims.leeway = std::chrono::seconds(config.jwt_leeway_s);
    return options;
}

admission::Rules admission_rules(const Config& config) {
    admission::Rules rules;
    rules.retention = kept_for(config);
    rules.security = security_policy(config);
    rules.several_tenants = asks_who(config);
    rules.inputs.bytes_max = static_cast<std::uint64_t>(config.inputs_total_mb) << 20;
    rules.inputs.timeout = std::chrono::seconds(config.inputs_timeout_s);
    rules.inputs.ca_file = config.inputs_ca_file;
    rules.reuse_never_nodes = config.reuse_never_nodes;
    rules.reuse_generation = config.reuse_generation;
    rules.keeping = keeping_rules(config);
    rules.plan.gpu_second_usd = config.gpu_second_usd;
    rules.plan.seconds_per_unit = config.gpu_seconds_per_unit;
    rules.plan.model_sizes = workflow::known_sizes(config.models);
    return rules;
}

api::ApiOptions api_options(const Config& config) {
    api::ApiOptions options;
    options.public_url = config.public_url;
    options.cdn_url = config.results_cdn_url;
    options.retention = retention_rules(config);
    options.json_body_bytes_max = static_cast<std::uint64_t>(config.body_mb_max) << 20;
    options.upload_bytes_max = static_cast<std::uint64_t>(config.upload_mb_max) << 20;
    options.allow_private_webhooks = config.webhooks_allow_private;
    options.allow_unverified_webhooks = config.webhooks_allow_unverified_tls;
    options.allow_private_buckets = config.results_allow_private_buckets;
    options.inline_bytes_max = static_cast<std::uint64_t>(config.results_inline_kb) << 10;
    options.streams_max = static_cast<std::size_t>(config.streams_max);
    options.metrics_are_open = config.metrics_open;
    options.has_frontend = !config.frontend_dir.empty();
    options.pools = pools_of(config);
    for (const fleet::PoolSettings& pool : config.fleet.pools) {
        options.pool_slots[pool.name] = pool.slots;
    }
    options.gpu_memory_mb = static_cast<std::uint64_t>(config.gpu_memory_mb);
    return options;
}

}  // namespace comfyd::app
