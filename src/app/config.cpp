#include "app/config.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "app/settings.hpp"
#include "net/http.hpp"
#include "net/server.hpp"
#include "workflow/catalogue.hpp"

namespace comfyd::app {
namespace {

// Walks a YAML document; every complaint names file and line.
class YamlReader {
public:
    YamlReader(std::string file, Config& config) : file_(std::move(file)), config_(config) {}

    Result<> read(const YAML::Node& root) {
        if (root.IsNull()) {
            return {};
        }
        return read_map(root, "");
    }

private:
    Error at(const YAML::Node& node, Error error) const {
        error.message = file_ + ":" + std::to_string(node.Mark().line + 1) + ": " + error.message;
        return error;
    }

    Result<> read_map(const YAML::Node& map, const std::string& prefix) {
        if (!map.IsMap()) {
            return fail(at(map, Error(Code::config_invalid, "expected 'key: value' lines here")));
        }
        for (const auto& entry : map) {
            const std::string key = prefix + entry.first.as<std::string>();
            Result<> done = read_entry(key, entry.second);
            if (!done) {
                // A complaint from below already names its line.
                Error error = std::move(done.error());
                return fail(
                    error.message.starts_with(file_ + ":") ? std::move(error)
                                                           : at(entry.first, std::move(error))
                );
            }
        }
        return {};
    }

    Result<> read_entry(const std::string& key, const YAML::Node& value) {
        if (std::ranges::find(kLists, key) != kLists.end()) {
            return read_list(key, value);
        }
        const bool is_group =
            std::any_of(
                settings().begin(),
                settings().end(),
                [&](const Setting& setting) { return setting.key.starts_with(key + "."); }
            ) ||
            key == "auth" || key == "cors";
        if (is_group) {
            return read_map(value, key + ".");
        }
        const auto words =
            std::find_if(settings().begin(), settings().end(), [&](const Setting& setting) {
                return setting.key == key && setting.is_list;
            });
        if (words != settings().end() && value.IsSequence()) {
            std::string joined;
            for (const YAML::Node& item : value) {
                joined += item.as<std::string>() + ",";
            }
            return words->set(config_, joined);
        }
        if (!value.IsScalar()) {
            const bool known =
                std::any_of(settings().begin(), settings().end(), [&](const Setting& setting) {
                    return setting.key == key;
                });
            return known ? Result<>(invalid("'" + key + "' must be a single value"))
                         : unknown_key(key);
        }
        return set_value(config_, key, value.as<std::string>());
    }

    Result<> read_list(const std::string& key, const YAML::Node& list) {
        if (!list.IsSequence()) {
            return invalid("'" + key + "' must be a list");
        }
        if (key == "cors.origins") {
            config_.cors_origins = list.as<std::vector<std::string>>();
            return {};
        }
        if (key == "workers") {
            config_.workers.clear();
        } else if (key == "tenants") {
            config_.tenants.clear();
        } else if (key == "models") {
            config_.models.clear();
        } else {
            config_.keys.clear();
        }
        for (const YAML::Node& item : list) {
            Result<> added = key == "workers"   ? read_worker(item)
                             : key == "tenants" ? read_tenant(item)
                             : key == "models"  ? read_model(item)
                                                : read_key(item);
            if (!added) {
                return fail(at(item, std::move(added.error())));
            }
        }
        return {};
    }

    Result<> read_worker(const YAML::Node& item) {
        if (item.IsScalar()) {
            return add_worker(config_, {"", item.as<std::string>()});
        }
        WorkerSetting worker;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "id") {
                worker.id = member.second.as<std::string>();
            } else if (name == "url") {
                worker.url = member.second.as<std::string>();
            } else if (name == "gpu_second_usd") {
                worker.gpu_second_usd = member.second.as<double>();
            } else if (name == "gpu") {
                worker.gpu = member.second.as<std::string>();
            } else if (name == "slots") {
                worker.slots = member.second.as<int>();
            } else if (name == "pool") {
                worker.pool = member.second.as<std::string>();
            } else if (name == "model_memory") {
                const auto bytes = parse_bytes(member.second.as<std::string>());
                if (!bytes) {
                    return invalid("a worker's 'model_memory' is a size such as 24GB");
                }
                worker.model_memory_bytes = *bytes;
            } else {
                return invalid(
                    "a worker has 'url', 'id', 'pool', 'gpu', 'slots', 'model_memory' and "
                    "'gpu_second_usd', not '" +
                    name + "'"
                );
            }
        }
        return add_worker(config_, std::move(worker));
    }

    Result<> read_tenant(const YAML::Node& item) {
        TenantSetting tenant;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "name") {
                tenant.name = member.second.as<std::string>();
            } else if (name == "weight") {
                tenant.weight = member.second.as<double>();
            } else if (name == "running_max") {
                tenant.running_max = member.second.as<int>();
            } else if (name == "tier") {
                const auto tier = scheduler::parse_tier(member.second.as<std::string>());
                if (!tier) {
                    return invalid("a tenant's 'tier' is basic, pro or enterprise");
                }
                tenant.tier = *tier;
            } else if (name == "gpu_seconds_per_day") {
                tenant.gpu_seconds_per_day = member.second.as<double>();
            } else if (name == "reuse") {
                tenant.reuse = member.second.as<bool>();
            } else if (name == "pool") {
                tenant.pool = member.second.as<std::string>();
            } else if (name == "denied_nodes") {
                tenant.denied_nodes = member.second.as<std::vector<std::string>>();
            } else if (name == "allowed_nodes") {
                tenant.allowed_nodes = member.second.as<std::vector<std::string>>();
            } else {
                return invalid(
                    "a tenant has 'name', 'weight', 'running_max', 'tier', 'gpu_seconds_per_day', "
                    "'reuse', 'pool', 'denied_nodes' and 'allowed_nodes', not '" +
                    name + "'"
                );
            }
        }
        const bool is_known = std::ranges::any_of(config_.tenants, [&](const TenantSetting& other) {
            return other.name == tenant.name;
        });
        if (tenant.name.empty() || is_known) {
            return invalid("a tenant needs a 'name' of its own");
        }
        if (!(tenant.weight > 0 && tenant.weight <= 1'000'000) || tenant.running_max < 0) {
            return invalid("a tenant's 'weight' is above 0, its 'running_max' not below 0");
        }
        if (!(tenant.gpu_seconds_per_day >= 0 && tenant.gpu_seconds_per_day <= 1e12)) {
            return invalid("a tenant's 'gpu_seconds_per_day' is 0 (no quota) or more");
        }
        config_.tenants.push_back(std::move(tenant));
        return {};
    }

    Result<> read_model(const YAML::Node& item) {
        workflow::KnownModel model;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            const std::string value = member.second.as<std::string>();
            if (name == "name") {
                model.name = value;
            } else if (name == "bytes") {
                model.bytes = parse_bytes(value).value_or(0);
            } else {
                return invalid("a model has 'name' and 'bytes', not '" + name + "'");
            }
        }
        if (model.name.empty() || model.bytes == 0) {
            return invalid("a model needs a 'name' and its size as 'bytes', such as 6.9GB");
        }
        config_.models.push_back(std::move(model));
        return {};
    }

    Result<> read_key(const YAML::Node& item) {
        auth::ApiKey key;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "name") {
                key.name = member.second.as<std::string>();
            } else if (name == "tenant") {
                key.tenant = member.second.as<std::string>();
            } else if (name == "sha256") {
                key.sha256 = member.second.as<std::string>();
            } else if (name == "operator") {
                key.is_operator = member.second.as<bool>();
            } else {
                return invalid(
                    "an API key has 'name', 'tenant', 'sha256' and 'operator', not '" + name + "'"
                );
            }
        }
        if (key.name.empty() || key.sha256.size() != 64 ||
            key.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
            return invalid(
                "an API key needs a 'name' and the 'sha256' of the key as 64 lower-case hex digits "
                "(printf %s \"$KEY\" | sha256sum)"
            );
        }
        if (key.tenant.empty()) {
            key.tenant = key.name;
        }
        config_.keys.push_back(std::move(key));
        return {};
    }

    std::string file_;
    Config& config_;
};

Result<> read_file(const std::string& file, Config& config) {
    std::ifstream stream(file);
    if (!stream) {
        return invalid("cannot read the configuration file '" + file + "'");
    }
    try {
        return YamlReader(file, config).read(YAML::Load(stream));
    } catch (const YAML::Exception& error) {
        return invalid(file + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
    }
}

}  // namespace

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

workflow::SecurityPolicy security_policy(const Config& config, const TenantSetting& tenant) {
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
        if (auto read = read_file(*sources.file, config); !read) {
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

Result<> check_config(const Config& config) {
    const auto endpoint = net::Endpoint::parse(config.listen);
    if (!endpoint) {
        return invalid("'listen': " + endpoint.error().message);
    }
    if (!endpoint->is_loopback() && config.keys.empty()) {
        return invalid(
            "comfyd would listen on " + config.listen +
            ", which others can reach, and no API key is configured. Either listen on 127.0.0.1 "
            "(the default), or set "
            "keys: auth.keys in the configuration file, or COMFYD_AUTH_KEYS=name=secret in the "
            "environment"
        );
    }
    if (!config.public_url.empty() && !net::Url::parse(config.public_url)) {
        return invalid(
            "'public_url' must look like https://comfyd.example.com, not '" + config.public_url +
            "'"
        );
    }
    if (!is_pool_name(config.engine_pool)) {
        return invalid("'engine.pool' must be a name of small letters, digits, '.', '_' and '-'");
    }
    const std::set<std::string> pools = pools_of(config);
    for (const TenantSetting& tenant : config.tenants) {
        if (!tenant.pool.empty() && !pools.contains(tenant.pool)) {
            return invalid(
                "the tenant '" + tenant.name + "' has the pool '" + tenant.pool +
                "', of which there is no worker"
            );
        }
    }
    return {};
}

std::set<std::string> pools_of(const Config& config) {
    std::set<std::string> pools;
    for (const WorkerSetting& worker : config.workers) {
        pools.insert(worker.pool);
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

}  // namespace

std::string show_config(const Config& config) {
    std::string out;
    std::string group;
    for (const Setting& setting : settings()) {
        const auto dot = setting.key.find('.');
        const std::string prefix = dot == std::string::npos ? "" : setting.key.substr(0, dot);
        if (prefix != group && !prefix.empty()) {
            out += prefix + ":\n";
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
        if (worker.slots != 1) {
            out += "    slots: " + std::to_string(worker.slots) + "\n";
        }
        if (worker.model_memory_bytes != 0) {
            out += "    model_memory: " + std::to_string(worker.model_memory_bytes) + "\n";
        }
        if (worker.pool != workflow::kDefaultPool) {
            out += "    pool: \"" + worker.pool + "\"\n";
        }
    }
    out += config.tenants.empty() ? "tenants: []\n" : "tenants:\n";
    for (const TenantSetting& tenant : config.tenants) {
        out += "  - name: \"" + tenant.name + "\"\n    weight: " + show_number(tenant.weight) +
               "\n    running_max: " + std::to_string(tenant.running_max) +
               "\n    tier: " + std::string(scheduler::to_string(tenant.tier)) +
               "\n    gpu_seconds_per_day: " + show_number(tenant.gpu_seconds_per_day) + "\n";
        out += std::string("    reuse: ") + (tenant.reuse ? "true" : "false") + "\n";
        if (!tenant.pool.empty()) {
            out += "    pool: \"" + tenant.pool + "\"\n";
        }
        out += show_words("denied_nodes", tenant.denied_nodes);
        out += show_words("allowed_nodes", tenant.allowed_nodes);
    }
    out += config.models.empty() ? "models: []\n" : "models:\n";
    for (const workflow::KnownModel& model : config.models) {
        out += "  - name: \"" + model.name + "\"\n    bytes: " + std::to_string(model.bytes) + "\n";
    }
    out += config.keys.empty() ? "auth:\n  keys: []\n" : "auth:\n  keys:\n";
    for (const auth::ApiKey& key : config.keys) {
        out += "    - name: \"" + key.name + "\"\n      tenant: \"" + key.tenant +
               "\"\n      sha256: \"********\"\n" +
               (key.is_operator ? "      operator: true\n" : "");
    }
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
        "  workers (COMFYD_WORKERS)\n      URLs of ComfyUI servers; in YAML also {id, url, pool, "
        "gpu, slots, model_memory, gpu_second_usd}.\n";
    out +=
        "  tenants\n      In YAML {name, weight, running_max, tier, gpu_seconds_per_day, "
        "reuse, pool, denied_nodes, allowed_nodes}: part of the GPU-seconds, jobs at a time, "
        "priority, whether outputs are reused, workers, node classes.\n";
    out +=
        "  models\n      In YAML {name, bytes}: sizes of model files, where the usual size of "
        "their kind is not near enough; * in a name stands for any characters.\n";
    out +=
        "  auth.keys (COMFYD_AUTH_KEYS)\n      API keys; in YAML {name, tenant, sha256, operator}, "
        "in the environment name=secret.\n";
    out +=
        "  cors.origins (COMFYD_CORS_ORIGINS)\n      Web origins that may call the API; \"*\" for "
        "all.\n";
    return out;
}

}  // namespace comfyd::app
