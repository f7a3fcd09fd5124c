#include "app/config/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "app/config/config_file.hpp"
#include "app/config/settings.hpp"
#include "auth/jwt/tokens.hpp"
#include "auth/oidc/discovery.hpp"
#include "fleet/instances/instance.hpp"
#include "models/source.hpp"
#include "net/address_guard.hpp"
#include "net/http.hpp"
#include "net/server.hpp"
#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::app {

workflow::SecurityPolicy security_policy(const Config& config) {
    workflow::SecurityPolicy policy;
    policy.denied_nodes = config.denied_nodes;
    policy.allowed_nodes = config.allowed_nodes;
    policy.allowed_domains = config.allowed_domains;
    policy.allow_private_hosts = config.inputs_allow_private;
    policy.nodes_max = static_cast<std::size_t>(config.workflow_nodes_max);
    policy.depth_max = static_cast<std::size_t>(config.workflow_depth_max);
    return policy;
}

workflow::SecurityPolicy security_policy(const Config& config, const auth::Tenant& tenant) {
    workflow::SecurityPolicy policy = security_policy(config);
    policy.denied_nodes.insert(
        policy.denied_nodes.end(), tenant.denied_nodes.begin(), tenant.denied_nodes.end()
    );
    if (!tenant.allowed_nodes.empty()) {
        policy.allowed_nodes = tenant.allowed_nodes;
    }
    return policy;
}

Result<Config> load_config(const ConfigSources& sources) {
    Config config;
    if (sources.file) {
        if (auto read = read_config_file(*sources.file, config); !read) {
            return fail(std::move(read.error()));
        }
    }
    if (sources.environment) {
        const auto apply = [&](const std::string& key) -> Result<> {
            const std::string name = environment_name(key);
            const auto value = sources.environment(name);
            if (!value) {
                return {};
            }
            auto set = set_value(config, key, *value);
            if (!set) {
                return invalid("environment variable " + name + ": " + set.error().message);
            }
            return {};
        };
        for (const Setting& setting : settings()) {
            if (auto applied = apply(setting.key); !applied) {
                return fail(std::move(applied.error()));
            }
        }
        for (const std::string_view list : kLists) {
            if (auto applied = apply(std::string(list)); !applied) {
                return fail(std::move(applied.error()));
            }
        }
        if (auto read = read_fleet_variables(sources.environment, config.fleet); !read) {
            return fail(std::move(read.error()));
        }
    }
    bool own_workers = false;
    for (const auto& [key, value] : sources.flags) {
        // --worker may be repeated: the first one replaces what file and environment said, the
        // others add.
        if (key == "worker") {
            if (!own_workers) {
                config.workers.clear();
                own_workers = true;
            }
            if (auto added = add_worker(config, {"", value}); !added) {
                return fail(std::move(added.error()));
            }
            continue;
        }
        if (auto set = set_value(config, key, value); !set) {
            return fail(std::move(set.error()));
        }
    }
    return config;
}

namespace {

bool has_store(const Config& config, const std::string& name) {
    return name == assets::kLocalStore ||
           std::ranges::any_of(config.stores, [&](const assets::StoreSetting& store) {
               return store.name == name;
           });
}

Result<> check_tokens(const Config& config) {
    if (!config.jwt_secret.empty() && config.jwt_secret.size() < auth::Tokens::kSecretBytesMin) {
        return invalid(
            "'jwt.secret' must have " + std::to_string(auth::Tokens::kSecretBytesMin) +
            " bytes or more; openssl rand -hex 32 makes one"
        );
    }
    if (config.jwt_issuer.empty()) {
        return config.jwt_jwks_url.empty()
                   ? Result<>()
                   : invalid("'jwt.jwks_url' needs 'jwt.issuer', whose keys those are");
    }
    if (config.jwt_audience.empty()) {
        return invalid(
            "'jwt.issuer' needs 'jwt.audience': without it tokens that the issuer made for others "
            "would be good here"
        );
    }
    const std::string& url = config.jwt_jwks_url.empty() ? config.jwt_issuer : config.jwt_jwks_url;
    if (!auth::oidc::is_safe_address(url)) {
        return invalid("the keys of an issuer come by https, or from this machine, not " + url);
    }
    return {};
}

Result<> check_login(const Config& config) {
    if (config.login_issuer.empty()) {
        return {};
    }
    if (config.login_client_id.empty() || config.public_url.empty()) {
        return invalid(
            "'login.issuer' needs 'login.client_id', and 'public_url', to which the provider sends "
            "browsers back"
        );
    }
    if (!auth::oidc::is_safe_address(config.login_issuer)) {
        return invalid("a login provider is asked by https, or on this machine");
    }
    if (!auth::oidc::is_safe_address(config.public_url)) {
        return invalid("'login.issuer' needs a 'public_url' of https, or of this machine");
    }
    const std::string scopes = " " + config.login_scopes + " ";
    if (scopes.find(" openid ") == std::string::npos) {
        return invalid("'login.scopes' must have openid: without it there is no ID token");
    }
    return {};
}

tl::unexpected<Error> no_such(
    const auth::Tenant& tenant, const char* field, const std::string& name
) {
    return fail(
        Code::invalid_argument,
        "the tenant '" + tenant.name + "' has the " + field + " '" + name +
            "', of which there is none",
        {{"field", field}}
    );
}

}  // namespace

Result<> check_tenant(const Config& config, const auth::Tenant& tenant) {
    const std::set<std::string> pools = pools_of(config);
    if (!tenant.pool.empty() && !pools.contains(tenant.pool)) {
        return no_such(tenant, "pool", tenant.pool);
    }
    for (const std::string& pool : tenant.allowed_pools) {
        if (!pools.contains(pool)) {
            return no_such(tenant, "pool", pool);
        }
    }
    if (!tenant.store.empty() && !has_store(config, tenant.store)) {
        return no_such(tenant, "store", tenant.store);
    }
    for (const std::string& store : tenant.allowed_stores) {
        if (!has_store(config, store)) {
            return no_such(tenant, "store", store);
        }
    }
    if (!tenant.retention.empty() && !assets::parse_retention_class(tenant.retention)) {
        return fail(
            Code::invalid_argument,
            "a tenant's 'retention' is immediate, standard, archive or glacier",
            {{"field", "retention"}}
        );
    }
    return {};
}

Result<> check_config(const Config& config) {
    const auto endpoint = net::Endpoint::parse(config.listen);
    if (!endpoint) {
        return invalid("'listen': " + endpoint.error().message);
    }
    if (!endpoint->is_loopback() && !asks_who(config)) {
        return invalid(
            "comfyd would listen on " + config.listen +
            ", which others can reach, and no API key is configured. Either listen on 127.0.0.1 "
            "(the default), or set "
            "keys: auth.keys in the configuration file, or COMFYD_AUTH_KEYS=name=secret in the "
            "environment; where keys were made at run time, auth.required: true"
        );
    }
    if (config.tls_certificate.empty() != config.tls_key.empty()) {
        return invalid("'tls.certificate' and 'tls.key' are set both or not at all");
    }
    if (config.proxies_protocol && config.proxies_trusted.empty()) {
        return invalid(
            "'proxies.protocol' needs 'proxies.trusted': whoever else connects could say it speaks "
            "for anybody"
        );
    }
    if (const auto proxies = net::TrustedProxies::parse(config.proxies_trusted); !proxies) {
        return invalid("'proxies.trusted': " + proxies.error().message);
    }
    if (!config.public_url.empty() && !net::Url::parse(config.public_url)) {
        return invalid(
            "'public_url' must look like https://comfyd.example.com, not '" + config.public_url +
            "'"
        );
    }
    if (const auto blocked = net::AddressRanges::parse(config.blocked_addresses); !blocked) {
        return invalid("'limits.blocked_addresses': " + blocked.error().message);
    }
    if (!config.tier_default.empty() && !auth::is_tier(config.tier_default)) {
        return invalid("'limits.tier_default' is free, basic, premium, pro, enterprise or empty");
    }
    if (!config.audit_receiver.empty() && !net::Url::parse(config.audit_receiver)) {
        return invalid(
            "'audit.receiver' must look like https://log.example.com/checkpoints, without a user "
            "or password: those go into 'audit.receiver_token'"
        );
    }
    if (!config.audit_receiver.empty() && config.audit_folder.empty()) {
        return invalid("'audit.receiver' needs a log to tell of: set 'audit.folder'");
    }
    for (const std::string& name : config.operators) {
        const bool is_known = std::ranges::any_of(config.keys, [&name](const auth::ApiKey& key) {
            return key.name == name;
        });
        if (!is_known) {
            return invalid(
                "'auth.operators' has the name '" + name + "', but no API key has this name"
            );
        }
    }
    if (auto checked = check_notify(config.notify); !checked) {
        return checked;
    }
    if (!fleet::is_fleet_name(config.fleet_name)) {
        return invalid(
            "'fleet.name' must have 1 to 24 small letters, digits and '-', which is neither the "
            "first nor the last, not '" +
            config.fleet_name + "'"
        );
    }
    if (auto checked = check_fleet(config.fleet, config.packs_allowed); !checked) {
        return checked;
    }
    if (!is_pool_name(config.engine_pool)) {
        return invalid("'engine.pool' must be a name of small letters, digits, '.', '_' and '-'");
    }
    for (const auth::Tenant& tenant : config.tenants) {
        if (auto checked = check_tenant(config, tenant); !checked) {
            return invalid(checked.error().message);
        }
    }
    if (!has_store(config, config.results_store)) {
        return invalid(
            "'results.store' is '" + config.results_store + "', but there is no such store"
        );
    }
    if (auto checked = check_tokens(config); !checked) {
        return checked;
    }
    if (auto checked = net::AddressGuard().set_nat64(config.guard_nat64); !checked) {
        return invalid("'guard.nat64': " + checked.error().message);
    }
    return check_login(config);
}

// No class ends before a shorter one, however they are set.
assets::RetentionRules retention_rules(const Config& config) {
    using Days = std::chrono::duration<double, std::ratio<86'400>>;
    const auto millis = [](double days) { return std::chrono::round<Millis>(Days(days)); };
    const Millis standard = millis(config.retention_days);
    const Millis archive = std::max(standard, millis(config.results_archive_days));
    assets::RetentionRules rules;
    rules.life = {
        std::min(standard, millis(config.results_immediate_hours / 24)),
        standard,
        archive,
        std::max(archive, millis(config.results_glacier_days)),
    };
    return rules;
}

std::vector<auth::ApiKey> api_keys(const Config& config) {
    std::vector<auth::ApiKey> keys = config.keys;
    for (auth::ApiKey& key : keys) {
        key.is_operator = key.is_operator ||
                          std::ranges::find(config.operators, key.name) != config.operators.end();
    }
    return keys;
}

std::string domain_of(const Config& config, std::string_view pool) {
    for (const std::string& entry : config.cluster_domains) {
        const std::size_t equals = entry.find('=');
        if (std::string_view(entry).substr(0, equals) == pool) {
            return entry.substr(equals + 1);
        }
    }
    return "main";
}

std::vector<std::string> domains_of(const Config& config) {
    std::set<std::string> domains{"main"};
    for (const std::string& entry : config.cluster_domains) {
        domains.insert(entry.substr(entry.find('=') + 1));
    }
    return {domains.begin(), domains.end()};
}

std::string files_folder(const Config& config) {
    return config.cluster_files.empty() ? config.data : config.cluster_files;
}

std::string public_origin(const Config& config) {
    const auto url = net::Url::parse(config.public_url);
    return url ? url->scheme + "://" + url->host_header() : "";
}

std::set<std::string> pools_of(const Config& config) {
    std::set<std::string> pools;
    for (const WorkerSetting& worker : config.workers) {
        pools.insert(worker.pool);
    }
    for (const fleet::PoolSettings& pool : config.fleet.pools) {
        pools.insert(pool.name);
    }
    if (config.engine_enabled) {
        pools.insert(config.engine_pool);
    }
    return pools;
}

namespace {

std::string show_words(const std::string& name, const std::vector<std::string>& words) {
    std::string out = words.empty() ? "" : "    " + name + ":\n";
    for (const std::string& word : words) {
        out += "      - \"" + word + "\"\n";
    }
    return out;
}

// What is as it would be without it is left out, but for what people look for first.
std::string show_tenant(const auth::Tenant& tenant) {
    std::string out = "  - name: \"" + tenant.name + "\"\n";
    const json::object plain = auth::Tenant().about();
    for (const auto& [key, value] : tenant.about()) {
        const std::string name(key);
        const bool is_told = name == "weight" || name == "running_max" || name == "tier";
        if (value.is_null() || (value == plain.at(key) && !is_told)) {
            continue;
        }
        if (value.is_array()) {
            out += "    " + name + ":\n";
            for (const json::value& word : value.get_array()) {
                out += "      - " + json::serialize(word) + "\n";
            }
        } else {
            out += "    " + name + ": " +
                   (value.is_double() ? show_number(value.get_double()) : json::serialize(value)) +
                   "\n";
        }
    }
    return out;
}

std::string show_keys(const std::vector<auth::ApiKey>& keys) {
    std::string out = keys.empty() ? "  keys: []\n" : "  keys:\n";
    for (const auth::ApiKey& key : keys) {
        out += "    - name: \"" + key.name + "\"\n      tenant: \"" + key.tenant +
               "\"\n      sha256: \"********\"\n" +
               (key.is_operator ? "      operator: true\n" : "") +
               (key.requests_per_minute > 0
                    ? "      requests_per_minute: " + show_number(key.requests_per_minute) + "\n"
                    : "");
    }
    return out;
}

}  // namespace

namespace {

// Where they are had from may be a secret.
std::string show_registered(const std::vector<models::RegisteredModel>& models) {
    std::string out;
    for (const models::RegisteredModel& model : models) {
        out += "  - folder: \"" + model.folder + "\"\n    name: \"" + model.name + "\"\n";
        for (const models::ModelVersion& version : model.versions) {
            out += "    sources: [";
            for (const std::string& source : version.sources) {
                out += (source == version.sources.front() ? "\"" : ", \"") +
                       models::shown_source(source) + "\"";
            }
            out += "]\n";
            out += version.sha256.empty() ? "" : "    sha256: \"" + version.sha256 + "\"\n";
            out += version.bytes ? "    bytes: " + std::to_string(*version.bytes) + "\n" : "";
        }
    }
    return out;
}

}  // namespace

std::string show_config(const Config& config) {
    std::string out;
    std::string group;
    for (const Setting& setting : settings()) {
        const auto dot = setting.key.find('.');
        const std::string prefix = dot == std::string::npos ? "" : setting.key.substr(0, dot);
        if (prefix != group && !prefix.empty()) {
            out += prefix + ":\n" + (prefix == "auth" ? show_keys(config.keys) : "");
        }
        group = prefix;
        const std::string indent = prefix.empty() ? "" : "  ";
        out += indent + setting.key.substr(dot == std::string::npos ? 0 : dot + 1) + ": " +
               setting.show(config) + "  # " + setting.help + "\n";
    }
    out += config.workers.empty() ? "workers: []\n" : "workers:\n";
    for (const WorkerSetting& worker : config.workers) {
        out += "  - id: \"" + worker.id + "\"\n    url: \"" + worker.url + "\"\n";
        if (worker.gpu_second_usd) {
            out += "    gpu_second_usd: " + show_number(*worker.gpu_second_usd) + "\n";
        }
        if (!worker.gpu.empty()) {
            out += "    gpu: \"" + worker.gpu + "\"\n";
        }
        if (!worker.region.empty()) {
            out += "    region: \"" + worker.region + "\"\n";
        }
        if (worker.slots != 1) {
            out += "    slots: " + std::to_string(worker.slots) + "\n";
        }
        if (worker.model_memory_bytes != 0) {
            out += "    model_memory: " + std::to_string(worker.model_memory_bytes) + "\n";
        }
        for (const auto& [name, value] : std::array<std::pair<const char*, std::string>, 4>{
                 {{"certificate", worker.certificate},
                  {"key", worker.key},
                  {"ca_file", worker.ca_file},
                  {"tls_name", worker.tls_name}}
             }) {
            out += value.empty() ? "" : "    " + std::string(name) + ": \"" + value + "\"\n";
        }
        if (!worker.token.empty()) {
            out += "    token: \"********\"\n";
        }
        if (worker.pool != workflow::kDefaultPool) {
            out += "    pool: \"" + worker.pool + "\"\n";
        }
    }
    out += show_fleet(config.fleet);
    out += config.tenants.empty() ? "tenants: []\n" : "tenants:\n";
    for (const auth::Tenant& tenant : config.tenants) {
        out += show_tenant(tenant);
    }
    out += config.stores.empty() ? "stores: []\n" : "stores:\n";
    for (const assets::StoreSetting& store : config.stores) {
        out += "  - name: \"" + store.name + "\"\n    provider: \"" + store.provider + "\"\n";
        out += show_words("tenants", store.tenants);
        for (const auto& [option, value] : store.options) {
            const bool is_open = option == "path" || option == "bucket" || option == "region" ||
                                 option == "endpoint";
            out += "    " + option + ": \"" + (is_open ? value : "***") + "\"\n";
        }
    }
    const bool has_models = !config.models.empty() || !config.registered_models.empty();
    out += has_models ? "models:\n" : "models: []\n";
    out += show_registered(config.registered_models);
    for (const workflow::KnownModel& model : config.models) {
        out += "  - name: \"" + model.name + "\"\n    bytes: " + std::to_string(model.bytes) + "\n";
    }
    out += show_notify(config.notify);
    out += config.cors_origins.empty() ? "cors:\n  origins: []\n" : "cors:\n  origins:\n";
    for (const std::string& origin : config.cors_origins) {
        out += "    - \"" + origin + "\"\n";
    }
    return out;
}

std::string describe_settings() {
    std::string out;
    for (const Setting& setting : settings()) {
        out += "  " + setting.key + " (" + environment_name(setting.key) + ")\n      " +
               setting.help + "\n";
    }
    out +=
        "  workers (COMFYD_WORKERS)\n      URLs of ComfyUI servers; in YAML also {id, url, token, "
        "pool, region, gpu, slots, model_memory, gpu_second_usd, certificate, key, ca_file, "
        "tls_name}.\n";
    out +=
        "  providers\n      In YAML a map of names, each {kind, …}: where machines can be had "
        "(docs/fleet.md).\n";
    out +=
        "  pools\n      In YAML {name, size, parked, template, offers, start_max_s, drain_max_s}: "
        "machines "
        "that comfyd starts, keeps and stops (docs/fleet.md).\n";
    out +=
        "  tenants\n      In YAML {name, tier, weight, running_max, gpu_seconds_per_day, reuse, "
        "pool, "
        "allowed_pools, denied_nodes, allowed_nodes, store, allowed_stores, retention, …}: "
        "priority, part of the GPU-seconds, jobs at a time, whether outputs are reused, workers, "
        "node classes, where outputs go and how long they stay (docs/identity.md has them all).\n";
    out +=
        "  stores\n      In YAML {name, provider, tenants} and what the provider needs: where "
        "outputs "
        "may be kept beside this server's folder, and for whom. folder: {path}; s3: {bucket, "
        "endpoint, region, access_key, secret_key, …}; drive: {folder, credentials_file, …}.\n";
    out +=
        "  models\n      In YAML {name, bytes}: sizes of model files, where the usual size of "
        "their kind is not near enough; * in a name stands for any characters.\n";
    out +=
        "  auth.keys (COMFYD_AUTH_KEYS)\n      API keys; in YAML {name, tenant, sha256, operator}, "
        "in the environment name=secret.\n";
    out +=
        "  notify.channels, notify.rules\n      In YAML: mail servers and gateways for short "
        "messages, and whom they tell of which events (docs/notifications.md).\n";
    out +=
        "  cors.origins (COMFYD_CORS_ORIGINS)\n      Web origins that may call the API; \"*\" for "
        "all.\n";
    return out;
}

}  // namespace comfyd::app
