#include "app/config/settings.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "app/config/edit_distance.hpp"
#include "app/config/setting_kinds.hpp"
#include "comfy/client.hpp"
#include "net/lines.hpp"

namespace comfyd::app {
namespace {

constexpr double kGpuSecondUsdMax = 1'000;

std::string nearest_key(std::string_view key) {
    std::string best;
    std::size_t best_distance = std::numeric_limits<std::size_t>::max();
    const auto consider = [&](std::string_view known) {
        const std::size_t d = edit_distance(key, known);
        if (d < best_distance) {
            best_distance = d;
            best = known;
        }
    };
    // A group is compared with groups, a setting with settings.
    const auto consider_both = [&](std::string_view known) {
        consider(known);
        if (key.find('.') == std::string_view::npos) {
            consider(known.substr(0, known.find('.')));
        }
    };
    for (const Setting& setting : settings()) {
        consider_both(setting.key);
    }
    for (const std::string_view list : kLists) {
        consider_both(list);
    }
    return best;
}

}  // namespace

bool is_pool_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    });
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{
        {"", 1},
        {"B", 1},
        {"KB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"TB", 1e12},
        {"KiB", 1024.0},
        {"MiB", 1024.0 * 1024},
        {"GiB", 1024.0 * 1024 * 1024},
        {"TiB", 1024.0 * 1024 * 1024 * 1024},
    }};
    constexpr double kMax = 1e15;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
        return std::nullopt;
    }
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (unit.starts_with(' ')) {
        unit.remove_prefix(1);
    }
    const auto known = std::find_if(kUnits.begin(), kUnits.end(), [unit](const auto& entry) {
        return entry.first == unit;
    });
    const double bytes = known == kUnits.end() ? 0 : number * known->second;
    return bytes >= 1 && bytes <= kMax ? std::optional(static_cast<std::uint64_t>(bytes))
                                       : std::nullopt;
}

std::string show_number(double number) {
    std::ostringstream out;
    out << number;
    return out.str();
}

tl::unexpected<Error> invalid(std::string message) {
    return fail(Code::config_invalid, std::move(message));
}

namespace {

std::vector<Setting> running_settings() {
    using enum log::Level;
    return {
        text("data", "Folder for the database, assets and scratch files.", &Config::data),
        flag(
            "accept_empty_database",
            "Begin anew where the database is gone but its files are there.",
            &Config::accept_empty_database
        ),
        choice<log::Level>(
            "log.level",
            "Least severe level that is logged.",
            &Config::log_level,
            {{"debug", debug}, {"info", info}, {"warning", warning}, {"error", error}}
        ),
        choice<log::Format>(
            "log.format",
            "auto: text on a terminal, JSON lines otherwise.",
            &Config::log_format,
            {{"auto", log::Format::automatic},
             {"text", log::Format::text},
             {"json", log::Format::json}}
        ),
        flag(
            "engine.enabled",
            "Run workflows of model-free nodes inside comfyd.",
            &Config::engine_enabled
        ),
        flag(
            "engine.offload",
            "What the engine can run goes to it alone and never occupies a GPU.",
            &Config::engine_offload
        ),
        number(
            "engine.slots",
            "Workflows that the engine runs at the same time, each in a process of its own.",
            &Config::engine_slots,
            1,
            64
        ),
        number(
            "engine.memory_mb",
            "Memory for pictures in the engine, in MB.",
            &Config::engine_memory_mb,
            64,
            1 << 20
        ),
        text("engine.pool", "Pool that the engine belongs to.", &Config::engine_pool),
        flag(
            "webhooks.allow_private_addresses",
            "Deliver webhooks to loopback and private networks.",
            &Config::webhooks_allow_private
        ),
        flag(
            "webhooks.allow_unverified_tls",
            "Clients may have their webhooks delivered to servers whose certificate nobody vouches "
            "for.",
            &Config::webhooks_allow_unverified_tls
        ),
        text(
            "webhooks.ca_file",
            "PEM file with further certificate authorities for webhooks.",
            &Config::webhooks_ca_file
        ),
        number(
            "webhooks.timeout_s", "Seconds for one delivery.", &Config::webhooks_timeout_s, 1, 300
        ),
        number(
            "webhooks.first_retry_ms",
            "Pause before the first repetition, doubled each time.",
            &Config::webhooks_first_retry_ms,
            1,
            3'600'000
        ),
        number(
            "webhooks.give_up_h",
            "Hours after which a delivery is given up.",
            &Config::webhooks_give_up_h,
            1,
            24 * 30
        ),
        text(
            "fleet.name",
            "Stands in the names of machines that comfyd starts, so that it finds its own again.",
            &Config::fleet_name
        ),
        words(
            "fleet.packs_allowed",
            "Packs of custom nodes that templates of pools may name: addresses and folders; one "
            "that ends with / allows what lies below it.",
            &Config::packs_allowed
        ),
        text(
            "fleet.certificate",
            "PEM file with the certificate that workers are shown (mutual TLS); needs fleet.key.",
            &Config::fleet_certificate
        ),
        text("fleet.key", "PEM file with its key.", &Config::fleet_key),
        text(
            "fleet.ca_file",
            "PEM file with the authority that alone signs certificates of workers.",
            &Config::fleet_ca_file
        ),
        number(
            "fleet.poll_ms",
            "Pause between looks at a worker that is silent; health checks are five times as far "
            "apart.",
            &Config::worker_poll_ms,
            10,
            3'600'000
        ),
        number(
            "fleet.lost_after_s",
            "Seconds after which an unreachable worker's job goes to another.",
            &Config::worker_lost_after_s,
            1,
            3600
        ),
        number(
            "fleet.dead_after_s",
            "Seconds after which the job of a worker that answers and runs nothing goes to "
            "another.",
            &Config::worker_dead_after_s,
            1,
            3600
        ),
        number(
            "fleet.silent_after_s",
            "Seconds after which a run that says nothing more hangs and is ended; 0: never.",
            &Config::worker_silent_after_s,
            0,
            7 * 86'400
        ),
        number(
            "fleet.breaker_failures",
            "Failures of a worker in a row after which it rests.",
            &Config::breaker_failures,
            1,
            1'000
        ),
        number(
            "fleet.breaker_open_s",
            "Seconds that it rests before a small prompt shows whether it works again; longer each "
            "time, up to ten times.",
            &Config::breaker_open_s,
            1,
            86'400
        ),
        words(
            "security.denied_nodes",
            "Node classes that no workflow may use; * stands for any characters.",
            &Config::denied_nodes
        ),
        words(
            "security.allowed_nodes",
            "Where not empty, the only node classes that workflows may use.",
            &Config::allowed_nodes
        ),
        words(
            "security.allowed_domains",
            "Hosts that addresses in inputs may name; empty: all but private ones.",
            &Config::allowed_domains
        ),
        number(
            "security.nodes_max", "Nodes of one workflow.", &Config::workflow_nodes_max, 1, 10'000
        ),
        number(
            "security.depth_max",
            "Nodes in the longest chain of one workflow.",
            &Config::workflow_depth_max,
            1,
            10'000
        ),
        flag(
            "inputs.allow_private",
            "Fetch files for inputs from loopback and private networks too.",
            &Config::inputs_allow_private
        ),
        number(
            "inputs.total_mb",
            "MB that the files of one request may have, where it names them by address or content.",
            &Config::inputs_total_mb,
            1,
            1 << 20
        ),
        number(
            "inputs.timeout_s",
            "Seconds for fetching the files of one request.",
            &Config::inputs_timeout_s,
            1,
            3600
        ),
        text(
            "inputs.ca_file",
            "PEM file with further certificate authorities for addresses of inputs.",
            &Config::inputs_ca_file
        ),
        flag(
            "scheduler.classify",
            "Weigh the priority that is asked for with the tenant's tier and quota and with what "
            "is known of the job.",
            &Config::scheduler_classify
        ),
        words(
            "reuse.never_nodes",
            "Node classes that may give something else each time; * stands for any characters.",
            &Config::reuse_never_nodes
        ),
        text(
            "reuse.generation",
            "Any text; when it is changed, outputs from before are not reused any more.",
            &Config::reuse_generation
        ),
        number(
            "scheduler.merge_max",
            "Jobs that one merged run may have, on workers with comfyd's node pack; 1: never "
            "merge.",
            &Config::scheduler_merge_max,
            1,
            64
        ),
        choice<scheduler::PolicyName>(
            "scheduler.policy",
            "How a worker is chosen for a job: finish-time, score or fifo.",
            &Config::scheduler_policy,
            {{"finish-time", scheduler::PolicyName::finish_time},
             {"score", scheduler::PolicyName::score},
             {"fifo", scheduler::PolicyName::fifo}}
        ),
        choice<Config::Prewarm>(
            "scheduler.prewarm",
            "Idle workers load models ahead of jobs: on, off, or auto, where past jobs would have "
            "gained by it.",
            &Config::scheduler_prewarm,
            {{"auto", Config::Prewarm::automatic},
             {"on", Config::Prewarm::on},
             {"off", Config::Prewarm::off}}
        ),
        words(
            "scheduler.prewarm_models",
            "Files of models that some idle worker shall have loaded, once a job has used them.",
            &Config::scheduler_prewarm_models
        ),
        number(
            "scheduler.prewarm_replay_s",
            "Seconds between two replays of past jobs, with and without loads ahead of jobs.",
            &Config::scheduler_prewarm_replay_s,
            1,
            7 * 86'400
        ),
        decimal(
            "plan.gpu_second_usd",
            "Price of one GPU-second, for cost estimates; workers may have their own.",
            &Config::gpu_second_usd,
            0,
            kGpuSecondUsdMax
        ),
        decimal(
            "plan.seconds_per_unit",
            "Seconds for one step of an SD 1.5 model over 512x512 pixels, for time estimates.",
            &Config::gpu_seconds_per_unit,
            0,
            1'000
        ),
        number(
            "plan.gpu_memory_mb",
            "Memory of the largest GPU, in MB, for a warning; 0: not known.",
            &Config::gpu_memory_mb,
            0,
            1 << 24
        ),
        number(
            "batches.items_max",
            "Sets of parameters that one batch may have.",
            &Config::batches_items_max,
            1,
            1'000'000
        ),
        number(
            "batches.in_flight",
            "Jobs of one batch that wait or run at a time.",
            &Config::batches_in_flight,
            1,
            10'000
        ),
        decimal(
            "retention_days",
            "Days that ended jobs and their outputs are kept; 0.5: half a day.",
            &Config::retention_days,
            0.00001,
            3650
        ),
        number(
            "shutdown_grace_s",
            "Seconds that running jobs get to finish at a shutdown.",
            &Config::shutdown_grace_s,
            0,
            3600
        ),
    };
}

}  // namespace

const std::vector<Setting>& settings() {
    static const std::vector<Setting> table = [] {
        std::vector<Setting> rows = serving_settings();
        std::ranges::move(running_settings(), std::back_inserter(rows));
        std::ranges::move(budget_settings(), std::back_inserter(rows));
        std::ranges::move(tier_settings(), std::back_inserter(rows));
        std::ranges::move(token_settings(), std::back_inserter(rows));
        std::ranges::move(login_settings(), std::back_inserter(rows));
        std::ranges::move(guard_settings(), std::back_inserter(rows));
        std::ranges::move(retry_settings(), std::back_inserter(rows));
        std::ranges::move(media_settings(), std::back_inserter(rows));
        std::ranges::move(result_settings(), std::back_inserter(rows));
        std::ranges::move(trust_settings(), std::back_inserter(rows));
        std::ranges::move(model_settings(), std::back_inserter(rows));
        std::ranges::move(cluster_settings(), std::back_inserter(rows));
        std::ranges::move(comfyui_settings(), std::back_inserter(rows));
        return rows;
    }();
    return table;
}

Result<> unknown_key(const std::string& key) {
    return invalid("unknown setting '" + key + "'; did you mean '" + nearest_key(key) + "'?");
}

namespace {

// Whoever has a worker's token may run workflows there, and call here in its name.
Result<> check_token(const WorkerSetting& worker) {
    constexpr std::size_t kBytesMin = 16;
    constexpr std::size_t kBytesMax = 512;
    const bool is_needed = net::line_name(worker.url).has_value();
    if (worker.token.empty() && !is_needed) {
        return {};
    }
    const bool is_sendable =
        std::ranges::all_of(worker.token, [](char c) { return c > ' ' && c <= '~'; });
    if (worker.token.size() < kBytesMin || worker.token.size() > kBytesMax || !is_sendable) {
        return invalid(
            "'token' of the worker " + worker.url + (is_needed ? " is needed and" : "") +
            " must have 16 to 512 printable characters without spaces; make one with `openssl "
            "rand -hex 32`"
        );
    }
    return {};
}

}  // namespace

Result<> add_worker(Config& config, WorkerSetting worker) {
    auto name = comfy::server_name(worker.url);
    if (!name) {
        return invalid(name.error().message);
    }
    if (worker.gpu_second_usd &&
        !(*worker.gpu_second_usd >= 0 && *worker.gpu_second_usd <= kGpuSecondUsdMax)) {
        return invalid(
            "'gpu_second_usd' of the worker " + worker.url + " must be a number from 0 to " +
            show_number(kGpuSecondUsdMax)
        );
    }
    constexpr int kSlotsMax = 64;
    if (worker.slots < 1 || worker.slots > kSlotsMax) {
        return invalid(
            "'slots' of the worker " + worker.url + " must be from 1 to " +
            std::to_string(kSlotsMax)
        );
    }
    if (!is_pool_name(worker.pool)) {
        return invalid(
            "'pool' of the worker " + worker.url +
            " must be a name of at most 64 small letters, digits, '.', '_' and '-'"
        );
    }
    if (!MachineWish::can_name(worker.region)) {
        return invalid(
            "'region' of the worker " + worker.url +
            " may have at most 64 printable ASCII characters"
        );
    }
    if (auto checked = check_token(worker); !checked) {
        return checked;
    }
    while (worker.url.ends_with('/')) {
        worker.url.pop_back();
    }
    if (worker.id.empty()) {
        worker.id = std::move(*name);
    }
    for (const WorkerSetting& other : config.workers) {
        if (other.id == worker.id) {
            return invalid("two workers are named '" + worker.id + "'");
        }
    }
    config.workers.push_back(std::move(worker));
    return {};
}

namespace {

// "name=key" or just the key; only the hash is kept.
Result<> add_plain_key(Config& config, const std::string& item) {
    const auto equals = item.find('=');
    auth::ApiKey key;
    key.name = equals == std::string::npos ? "key-" + std::to_string(config.keys.size() + 1)
                                           : item.substr(0, equals);
    key.tenant = key.name;
    const std::string secret = equals == std::string::npos ? item : item.substr(equals + 1);
    if (secret.size() < 16) {
        return invalid("an API key must have at least 16 characters");
    }
    key.sha256 = auth::hash_key(secret);
    config.keys.push_back(std::move(key));
    return {};
}

Result<> set_list(Config& config, std::string_view key, const std::string& value) {
    if (key == "workers") {
        config.workers.clear();
        for (const std::string& url : split_commas(value)) {
            if (auto added = add_worker(config, {"", url}); !added) {
                return added;
            }
        }
    } else if (key == "auth.keys") {
        config.keys.clear();
        for (const std::string& item : split_commas(value)) {
            if (auto added = add_plain_key(config, item); !added) {
                return added;
            }
        }
    } else if (key == "tenants" || key == "models" || key == "stores" || key == "pools" ||
               key.starts_with("notify.")) {
        return invalid("'" + std::string(key) + "' can be set in the configuration file alone");
    } else {
        config.cors_origins = split_commas(value);
    }
    return {};
}

}  // namespace

Result<> set_value(Config& config, const std::string& key, const std::string& value) {
    for (const Setting& setting : settings()) {
        if (setting.key == key) {
            return setting.set(config, value);
        }
    }
    if (std::find(std::begin(kLists), std::end(kLists), key) != std::end(kLists)) {
        return set_list(config, key, value);
    }
    return unknown_key(key);
}

std::string environment_name(std::string_view key) {
    std::string name = "COMFYD_";
    for (const char c : key) {
        name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return name;
}

}  // namespace comfyd::app
