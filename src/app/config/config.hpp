// The configuration: one YAML file, COMFYD_* environment variables and flags, in rising precedence.
// Every setting is one row of a table, from which reading, checking, help and `comfyd config` all
// follow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/fleet_config.hpp"
#include "app/config/notify_config.hpp"
#include "assets/blob_stores.hpp"
#include "assets/retention_class.hpp"
#include "audit/event.hpp"
#include "auth/authenticator.hpp"
#include "auth/tenant.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sandbox.hpp"
#include "base/time.hpp"
#include "jobs/doctor.hpp"
#include "limits/tiers.hpp"
#include "models/register.hpp"
#include "net/proxies.hpp"
#include "scheduler/scheduler.hpp"
#include "workflow/catalogue/model_sizes.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::app {

struct WorkerSetting {
    std::string id;  // empty: made from the URL
    std::string url;
    std::optional<double> gpu_second_usd{};  // nullopt: as plan.gpu_second_usd says
    std::string gpu{};  // workers with the same name share one GPU; empty: it has its own
    int slots = 1;      // prompts at a time
    std::string pool = "default";
    std::string region{};                  // where it stands, as requests name it
    std::uint64_t model_memory_bytes = 0;  // for models that stay beside those of the latest job
    std::string token{};  // of the agent in front of it (`comfyd worker`); empty: none
    // Mutual TLS; what is empty is as of all (fleet.certificate …).
    std::string certificate{};
    std::string key{};
    std::string ca_file{};
    std::string tls_name{};  // in its certificate; empty: the host of its URL
};

struct Config {
    std::string listen = "127.0.0.1:8080";
    std::string data = "./comfyd-data";
    bool accept_empty_database = false;
    std::string public_url;
    std::string tls_certificate;  // files in PEM form; both or none
    std::string tls_key;
    std::vector<std::string> hosts;  // further names of this server
    std::vector<std::string> proxies_trusted;
    bool proxies_protocol = false;  // they speak the PROXY protocol, and nobody else is let in
    net::TrustedProxies::Header proxies_header = net::TrustedProxies::Header::x_forwarded_for;
    int io_threads = 0;  // 0: one per core, at most 8
    std::vector<WorkerSetting> workers;
    // ComfyUI that we start on this computer, as fleet::read_local_settings() takes it; without
    // "dir": none.
    std::map<std::string, std::string> comfyui{};
    // Those that are neither named here nor made at run time share GPUs evenly and have no limits.
    std::vector<auth::Tenant> tenants;

    log::Level log_level = log::Level::info;
    log::Format log_format = log::Format::automatic;
    bool log_redact_prompts = false;

    // Who did what.
    std::string audit_folder;  // empty: nobody notes it
    audit::Extent audit_extent = audit::Extent::changes;
    int audit_file_mb = 64;
    int audit_files = 16;
    int audit_checkpoint_s = 60;
    bool audit_cut_addresses = false;
    std::string audit_receiver;  // URL; empty: none
    std::string audit_receiver_token;
    std::string audit_receiver_ca_file;

    SandboxLevel sandbox_level = SandboxLevel::basic;  // of children
    bool sandbox_required = false;
    std::string sandbox_bubblewrap;  // the program as it was found at start; no setting

    bool engine_enabled = true;
    bool engine_offload = false;
    int engine_slots = 1;
    int engine_memory_mb = 4096;
    std::string engine_pool = "default";

    std::vector<auth::ApiKey> keys;
    std::vector<std::string> operators;  // names of keys, beside those that say it of themselves
    bool auth_required = false;          // though no key is configured
    bool key_in_query = false;
    bool metrics_open = false;

    // Tokens in place of keys.
    std::string jwt_secret;  // of HS256; empty: none are accepted
    std::string jwt_issuer;  // empty: there is none
    std::string jwt_audience;
    std::string jwt_jwks_url;  // empty: as the issuer says
    std::string jwt_ca_file;
    std::string jwt_tenant_claim;  // empty: user_id, or sub
    std::string jwt_scope_claim;   // empty: permissions, or scope
    int jwt_leeway_s = 60;
    bool jwt_require_exp = true;

    // Login of browsers by an OpenID provider, beside that by key.
    std::string login_issuer;  // empty: there is none
    std::string login_client_id;
    std::string login_client_secret;  // empty: a public client
    std::string login_scopes = "openid";
    std::string login_tenant_claim;  // empty: as of tokens
    std::string login_scope_claim;   // likewise
    std::string login_ca_file;       // likewise

    // Where URLs of clients must not lead, beside private addresses.
    std::vector<std::string> guard_own_hosts;     // further machines of the operator
    std::vector<std::string> guard_shared_hosts;  // whose addresses others have as well
    std::vector<std::string> guard_nat64;         // prefixes

    std::vector<std::string> cors_origins;

    std::int64_t body_mb_max = 32;
    std::int64_t upload_mb_max = 1024;
    std::vector<int> outputs_thumbnails{};  // of every picture and video, the largest first
    int outputs_helpers = 0;                // 0: half as many as cores
    int outputs_helper_memory_mb = 2048;
    int outputs_helper_timeout_s = 30;
    std::int64_t bodies_mb_max = 256;
    int stall_timeout_s = 30;
    int connections_max = 16'384;
    limits::Tiers tiers{};
    std::string tier_default;                    // of tenants for which none is named; empty: none
    int strangers_per_minute = 6'000;            // requests without a good key, from one address
    std::vector<std::string> blocked_addresses;  // and ranges
    int disk_free_mb = 0;  // with less nothing comes in; 0: 512, or a twentieth of a small disk
    int connections_per_address = 0;  // 0: a quarter of all, but on loopback as many as there are
    int streams_max = 20'000;
    std::int64_t queue_max = 1'000'000;
    int header_timeout_s = 15;
    int idle_timeout_s = 75;

    bool webhooks_allow_private = false;
    bool webhooks_allow_unverified_tls = false;
    std::string webhooks_ca_file;
    int webhooks_timeout_s = 15;
    int webhooks_first_retry_ms = 1000;
    int webhooks_give_up_h = 24;
    NotifyConfig notify{};  // whom the operator wants to be told

    bool scheduler_classify = true;
    int scheduler_merge_max = 8;
    scheduler::PolicyName scheduler_policy = scheduler::PolicyName::finish_time;
    // Whether idle workers load models ahead of jobs; `automatic`: where past jobs, replayed, would
    // have gained by it.
    enum class Prewarm { automatic, on, off };
    Prewarm scheduler_prewarm = Prewarm::automatic;
    std::vector<std::string> scheduler_prewarm_models;  // that are loaded wherever a worker idles
    int scheduler_prewarm_replay_s = 3600;              // between two replays

    std::vector<std::string> packs_allowed;  // custom nodes that templates of pools may name
    std::string fleet_name = "main";         // stands in the names of machines that it starts
    FleetConfig fleet{};
    std::string fleet_certificate;  // that workers are shown; both or none
    std::string fleet_key;
    std::string fleet_ca_file;  // who alone signs theirs; empty: whom the system trusts
    int worker_poll_ms = 1000;
    int worker_lost_after_s = 15;
    int worker_dead_after_s = 60;
    int worker_silent_after_s = 1'800;
    int breaker_failures = 5;
    int breaker_open_s = 60;

    // What is done about attempts that fail.
    jobs::FailurePolicy failures{};  // of it, only how often each cause is tried again
    int poison_workers = 2;
    double timeout_factor = 1.5;
    double retry_percent = 20;
    double retries_per_minute = 60;

    std::string frontend_dir;  // the files of ComfyUI's editor; empty: none

    // What every submitted workflow must keep to.
    std::vector<std::string> denied_nodes = workflow::SecurityPolicy{}.denied_nodes;
    std::vector<std::string> allowed_nodes;
    std::vector<std::string> allowed_domains;
    int workflow_nodes_max = 10'000;
    int workflow_depth_max = 1'000;

    // Files that requests name by address or content.
    bool inputs_allow_private = false;
    int inputs_total_mb = 256;
    int inputs_timeout_s = 60;
    std::string inputs_ca_file;

    std::vector<std::string> reuse_never_nodes;  // whose outputs are never reused
    std::string reuse_generation;

    // What plans reckon with.
    std::vector<workflow::KnownModel> models;  // whose sizes are known
    std::vector<models::RegisteredModel> registered_models;
    // What workers may fetch beside those.
    bool fetching_addresses = false;
    bool fetching_properties = false;
    std::vector<std::string> fetching_hosts;
    std::string fetching_list;         // a file; empty: none
    bool fetching_only_warns = false;  // of models that do not go together
    double gpu_second_usd = 0.0005;
    double gpu_seconds_per_unit = 0.05;
    int gpu_memory_mb = 0;

    // Where outputs go, and how long they stay.
    std::vector<assets::StoreSetting> stores;  // beside the folder of this server
    std::string results_store = std::string(assets::kLocalStore);
    assets::RetentionClass results_retention = assets::RetentionClass::standard;
    double results_immediate_hours = 24;
    double results_archive_days = 365;
    double results_glacier_days = 365 * 7;
    std::string results_cdn_url;
    double results_link_hours = 24;
    int results_inline_kb = 4096;
    bool results_allow_private_buckets = false;
    std::string results_buckets_ca_file;
    int batches_items_max = 10'000;
    int batches_in_flight = 64;  // jobs of one batch at a time

    double retention_days = 30;
    int shutdown_grace_s = 5;

    // Of several nodes.
    std::string ledger;  // URL of a database that they share; empty: one file in the data folder
    std::string events;  // URL of the Redis over which they talk; empty: they only look
    std::string cluster_name = "comfyd";
    std::string cluster_node;                  // how this one is shown; empty: its host and process
    std::string cluster_secret;                // what they seal and sign with
    std::string cluster_files;                 // the folder that they share
    std::vector<std::string> cluster_domains;  // "pool=domain"; those not named: main
    std::vector<std::string> cluster_leads;    // domains that this one may lead; empty: all
};

// It is one node of several.
inline bool is_clustered(const Config& config) {
    return !config.ledger.empty();
}

// Whose leader runs what the pool's workers run.
std::string domain_of(const Config& config, std::string_view pool);
// All that there are, in the order of their names.
std::vector<std::string> domains_of(const Config& config);
// The folder for files that all nodes see; of one process, the data folder.
std::string files_folder(const Config& config);

// The pools that its workers form.
std::set<std::string> pools_of(const Config& config);

// Tokens are accepted.
inline bool takes_tokens(const Config& config) {
    return !config.jwt_secret.empty() || !config.jwt_issuer.empty();
}
// Requests must say who makes them.
inline bool asks_who(const Config& config) {
    return !config.keys.empty() || config.auth_required || takes_tokens(config) ||
           !config.login_issuer.empty();
}

// "https://comfyd.example.com", as browsers write it in Origin; empty: no public address is set.
std::string public_origin(const Config& config);

// What a tenant may have depends on the pools and stores there are. Code::invalid_argument.
Result<> check_tenant(const Config& config, const auth::Tenant& tenant);

// The keys, each with whether it is an operator's.
std::vector<auth::ApiKey> api_keys(const Config& config);

// How long outputs of each class are kept.
assets::RetentionRules retention_rules(const Config& config);

// The part of it that workflows must keep to.
workflow::SecurityPolicy security_policy(const Config& config);
workflow::SecurityPolicy security_policy(const Config& config, const auth::Tenant& tenant);

// Reads the file (when given), then the environment, then the flags ("key", "value").
// Code::config_invalid says file, line, key and what would be right.
struct ConfigSources {
    std::optional<std::string> file;
    std::function<std::optional<std::string>(const std::string& name)> environment;
    std::vector<std::pair<std::string, std::string>> flags;
};
Result<Config> load_config(const ConfigSources& sources);

// The effective configuration as YAML, secrets masked, with a comment for each setting.
std::string show_config(const Config& config);

// One line per setting: key, environment variable, help.
std::string describe_settings();

// What must hold between settings; at start. For example: no keys and a public address.
Result<> check_config(const Config& config);

}  // namespace comfyd::app
