#include "app/config/config_file.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "app/config/settings.hpp"

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
        if (key == "providers") {
            return read_providers(value, config_.fleet);
        }
        if (std::ranges::find(kLists, key) != kLists.end()) {
            return read_list(key, value);
        }
        const bool is_group =
            std::any_of(
                settings().begin(),
                settings().end(),
                [&](const Setting& setting) { return setting.key.starts_with(key + "."); }
            ) ||
            std::ranges::any_of(kLists, [&](std::string_view list) {
                return list.starts_with(key + ".");
            });
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
        } else if (key == "pools") {
            config_.fleet.pools.clear();
        } else if (key == "tenants") {
            config_.tenants.clear();
        } else if (key == "models") {
            config_.models.clear();
            config_.registered_models.clear();
        } else if (key == "stores") {
            config_.stores.clear();
        } else if (key == "notify.channels") {
            config_.notify.channels.clear();
        } else if (key == "notify.rules") {
            config_.notify.rules.clear();
        } else {
            config_.keys.clear();
        }
        for (const YAML::Node& item : list) {
            Result<> added = key == "workers"           ? read_worker(item)
                             : key == "pools"           ? read_pool(item, config_.fleet)
                             : key == "tenants"         ? read_tenant(item)
                             : key == "models"          ? read_model(item)
                             : key == "stores"          ? read_store(item)
                             : key == "notify.channels" ? read_channel(item, config_.notify)
                             : key == "notify.rules"    ? read_rule(item, config_.notify)
                                                        : read_key(item);
            if (!added) {
                return fail(at(item, std::move(added.error())));
            }
        }
        return {};
    }

    // nullptr: it has no such member.
    static std::string* tls_member(WorkerSetting& worker, std::string_view name) {
        return name == "certificate" ? &worker.certificate
               : name == "key"       ? &worker.key
               : name == "ca_file"   ? &worker.ca_file
               : name == "tls_name"  ? &worker.tls_name
                                     : nullptr;
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
            } else if (name == "region") {
                worker.region = member.second.as<std::string>();
            } else if (name == "token") {
                worker.token = member.second.as<std::string>();
            } else if (std::string* text = tls_member(worker, name)) {
                *text = member.second.as<std::string>();
            } else if (name == "model_memory") {
                const auto bytes = parse_bytes(member.second.as<std::string>());
                if (!bytes) {
                    return invalid("a worker's 'model_memory' is a size such as 24GB");
                }
                worker.model_memory_bytes = *bytes;
            } else {
                return invalid(
                    "a worker has 'url', 'id', 'token', 'pool', 'region', 'gpu', 'slots', "
                    "'model_memory', 'gpu_second_usd', 'certificate', 'key', 'ca_file' and "
                    "'tls_name', not '" +
                    name + "'"
                );
            }
        }
        return add_worker(config_, std::move(worker));
    }

    // As JSON has it: numbers and truth values where a member has no text.
    static json::value as_json(const std::string& name, const YAML::Node& node) {
        if (node.IsSequence()) {
            json::array list;
            for (const YAML::Node& item : node) {
                list.emplace_back(item.as<std::string>());
            }
            return list;
        }
        if (node.IsMap()) {
            json::object map;
            for (const auto& member : node) {
                map[member.first.as<std::string>()] = as_json(name, member.second);
            }
            return map;
        }
        if (node.IsNull()) {
            return nullptr;
        }
        const bool is_text =
            name == "tier" || name == "pool" || name == "store" || name == "retention";
        if (is_text) {
            return json::value(node.as<std::string>());
        }
        bool flag = false;
        if (YAML::convert<bool>::decode(node, flag)) {
            return flag;
        }
        return node.as<double>();
    }

    Result<> read_tenant(const YAML::Node& item) {
        auth::Tenant tenant;
        json::object members;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "name") {
                tenant.name = member.second.as<std::string>();
            } else {
                members[name] = as_json(name, member.second);
            }
        }
        const bool is_known = std::ranges::any_of(config_.tenants, [&](const auth::Tenant& other) {
            return other.name == tenant.name;
        });
        if (!auth::is_tenant_name(tenant.name) || is_known) {
            return invalid("a tenant needs a 'name' of its own");
        }
        auto read = tenant.with(members);
        if (!read) {
            return invalid(read.error().message);
        }
        if (!read->retention.empty() && !assets::parse_retention_class(read->retention)) {
            return invalid("a tenant's 'retention' is immediate, standard, archive or glacier");
        }
        config_.tenants.push_back(std::move(*read));
        return {};
    }

    // What the provider understands is its own affair: it says what is missing or too much.
    Result<> read_store(const YAML::Node& item) {
        assets::StoreSetting store;
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "name") {
                store.name = member.second.as<std::string>();
            } else if (name == "provider") {
                store.provider = member.second.as<std::string>();
            } else if (name == "tenants") {
                store.tenants = member.second.as<std::vector<std::string>>();
            } else {
                store.options[name] = member.second.as<std::string>();
            }
        }
        const bool is_taken =
            store.name == assets::kLocalStore ||
            std::ranges::any_of(config_.stores, [&](const assets::StoreSetting& other) {
                return other.name == store.name;
            });
        if (!is_pool_name(store.name) || is_taken) {
            return invalid(
                "a store needs a 'name' of its own: small letters, digits, '.', '_' and '-'; "
                "\"local\" is the folder of this server"
            );
        }
        config_.stores.push_back(std::move(store));
        return {};
    }

    Result<> read_model(const YAML::Node& item) {
        workflow::KnownModel model;
        std::string folder;
        json::object facts;  // of a model that workers may fetch
        for (const auto& member : item) {
            const std::string name = member.first.as<std::string>();
            if (name == "sources") {
                json::array& sources = facts[name].emplace_array();
                for (const YAML::Node& source : member.second) {
                    sources.emplace_back(source.as<std::string>());
                }
                continue;
            }
            const std::string value = member.second.as<std::string>();
            if (name == "folder") {
                folder = value;
            } else if (name == "source" || name == "sha256") {
                facts[name] = value;
            } else if (name == "name") {
                model.name = value;
            } else if (name == "bytes") {
                model.bytes = parse_bytes(value).value_or(0);
                const bool is_exact = value.find_first_not_of("0123456789") == std::string::npos;
                if (is_exact && model.bytes > 0) {
                    facts[name] = model.bytes;
                }
            } else {
                return invalid(
                    "a model has 'name', 'bytes', 'folder', 'source', 'sources' and 'sha256', not "
                    "'" +
                    name + "'"
                );
            }
        }
        if (!folder.empty() || facts.contains("source") || facts.contains("sources")) {
            return read_registered(std::move(model), std::move(folder), facts);
        }
        if (model.name.empty() || model.bytes == 0) {
            return invalid("a model needs a 'name' and its size as 'bytes', such as 6.9GB");
        }
        config_.models.push_back(std::move(model));
        return {};
    }

    Result<> read_registered(
        workflow::KnownModel model, std::string folder, const json::object& facts
    ) {
        auto version = models::read_version(folder, model.name, facts);
        if (!version) {
            return invalid(version.error().message);
        }
        models::RegisteredModel registered;
        registered.folder = std::move(folder);
        registered.name = model.name;
        registered.last = 1;
        registered.versions.push_back(std::move(*version));
        const std::string path = registered.path();
        if (std::ranges::count(config_.registered_models, path, &models::RegisteredModel::path) >
            0) {
            return invalid("the model '" + path + "' is there twice");
        }
        config_.registered_models.push_back(std::move(registered));
        if (model.bytes > 0) {
            config_.models.push_back(std::move(model));
        }
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
            } else if (name == "requests_per_minute") {
                key.requests_per_minute = member.second.as<double>();
            } else {
                return invalid(
                    "an API key has 'name', 'tenant', 'sha256', 'operator' and "
                    "'requests_per_minute', not '" +
                    name + "'"
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
        if (!(key.requests_per_minute >= 0 && key.requests_per_minute <= 1e9)) {
            return invalid("an API key's 'requests_per_minute' is a number, 0 or more");
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

}  // namespace

Result<> read_config_file(const std::string& file, Config& config) {
    std::ifstream stream(file);
    if (!stream) {
        return invalid("cannot read the configuration file '" + file + "'");
    }
    try {
        return YamlReader(file, config).read(YAML::Load(stream));
    } catch (const YAML::BadConversion& error) {
        return invalid(
            file + ":" + std::to_string(error.mark.line + 1) +
            ": the value here is of the wrong kind: a text, a number or a list was expected"
        );
    } catch (const YAML::Exception& error) {
        return invalid(file + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
    }
}

}  // namespace comfyd::app
