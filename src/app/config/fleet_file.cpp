// How providers and pools are written in the configuration file.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "app/config/fleet_config.hpp"
#include "app/config/scaling_file.hpp"
#include "app/config/settings.hpp"
#include "app/config/yaml_members.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "models/wish.hpp"

namespace comfyd::app {
namespace {

constexpr std::array<std::string_view, 3> kSecrets{"key", "token", "registry_password"};
constexpr std::uintmax_t kWorkflowBytesMax = 4 * 1024 * 1024;
constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr std::size_t kModelsBytesMax = 100'000;  // the system's limit for a variable is 128 KiB

bool is_secret(std::string_view option) {
    return std::ranges::find(kSecrets, option) != kSecrets.end();
}

// nullopt: it is no text, nor a list of some.
std::optional<std::string> joined(const YAML::Node& node) {
    if (node.IsScalar()) {
        return node.Scalar();
    }
    std::string all;
    for (const YAML::Node& item : node) {
        if (!node.IsSequence() || !item.IsScalar()) {
            return std::nullopt;
        }
        all += (all.empty() ? "" : ",") + item.Scalar();
    }
    return node.IsSequence() ? std::optional(std::move(all)) : std::nullopt;
}

double price(Members& members, const std::string& name, double otherwise) {
    const std::string text = members.text(name);
    if (text.empty()) {
        return otherwise;
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !std::isfinite(value) || value < 0) {
        members.complain("has '" + name + "', a number of 0 or more, not '" + text + "'");
    }
    return value;
}

// A name that every shell and every provider can set.
bool is_variable(std::string_view name) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return !name.empty() && !is_digit(name.front()) && std::ranges::all_of(name, [&](char c) {
        return c == '_' || is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
    });
}

void read_environment(Members& members, fleet::MachineTemplate& made_from) {
    const YAML::Node node = members.hidden("env");
    if (!node) {
        return;
    }
    if (!node.IsMap()) {
        members.complain("has 'env', a map of names and values");
        return;
    }
    for (const auto& entry : node) {
        const std::string name = entry.first.as<std::string>();
        const bool is_ours = name.starts_with("COMFYD_") && !name.starts_with("COMFYD_MODELS_");
        if (!is_variable(name) || is_ours) {
            members.complain("has 'env' with the name '" + name + "', which cannot be given");
        } else if (!entry.second.IsScalar()) {
            members.complain("has 'env' with '" + name + "', which must be a text");
        } else {
            made_from.environment[name] = entry.second.Scalar();
        }
    }
}

// As JSON has it; what is not as it must be, who reads that says.
json::object read_model(const YAML::Node& item) {
    json::object model;
    for (const auto& member : item) {
        const std::string name = member.first.as<std::string>();
        std::int64_t number = 0;
        bool flag = false;
        if (name == "bytes" && YAML::convert<std::int64_t>::decode(member.second, number)) {
            model[name] = number;
        } else if (name == "required" && YAML::convert<bool>::decode(member.second, flag)) {
            model[name] = flag;
        } else if (member.second.IsScalar()) {
            model[name] = member.second.Scalar();
        } else {
            model[name] = json::array();
        }
    }
    return model;
}

// An agent is told of its models by its environment, wherever it is.
void read_models(Members& members, fleet::MachineTemplate& made_from) {
    const YAML::Node node = members.hidden("models");
    if (!node) {
        return;
    }
    json::array list;
    bool is_list = node.IsSequence();
    for (std::size_t i = 0; is_list && i < node.size(); ++i) {
        is_list = node[i].IsMap();
        list.emplace_back(is_list ? read_model(node[i]) : json::object());
    }
    const std::string text = json::serialize(list);
    const auto wishes = models::read_wishes(text);
    if (!wishes || !is_list || text.size() > kModelsBytesMax) {
        members.complain(
            "has 'models': " + (wishes && is_list ? "it takes more than 100 kB"
                                : is_list         ? wishes.error().message
                                                  : "it must be a list of {folder, name, source}")
        );
        return;
    }
    const auto pickles = made_from.environment.find("COMFYD_MODELS_PICKLES");
    for (const models::ModelWish& wish : *wishes) {
        if (models::is_pickle(wish.name) &&
            (pickles == made_from.environment.end() || pickles->second != "1")) {
            members.complain(
                "has 'models' with '" + wish.path() +
                "', which runs code when it is loaded: 'env' with COMFYD_MODELS_PICKLES: 1 allows "
                "it"
            );
        }
    }
    made_from.environment["COMFYD_MODELS"] = text;
}

std::string read_workflow(Members& members) {
    const std::string file = members.text("warm_up");
    if (file.empty()) {
        return {};
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const auto workflow = json::parse_object(text);
    if (!workflow || workflow->empty() || text.size() > kWorkflowBytesMax) {
        members.complain(
            "has 'warm_up', but '" + file +
            "' cannot be read or is no workflow in API form (ComfyUI: Workflow, Export (API))"
        );
        return {};
    }
    return json::serialize(*workflow);
}

void read_template(const YAML::Node& node, fleet::PoolSettings& pool, Members& of_pool) {
    if (!node.IsMap()) {
        of_pool.complain("has 'template', a map");
        return;
    }
    Members members(node, "'template' of the pool '" + pool.name + "'");
    fleet::MachineTemplate& made_from = pool.made_from;
    made_from.image = members.text("image");
    if (made_from.image.find_first_of(" \t\r\n") != std::string::npos) {
        members.complain("has 'image' with a space in it: '" + made_from.image + "'");
    }
    made_from.command = members.texts("command");
    read_environment(members, made_from);
    read_models(members, made_from);
    made_from.packs = members.texts("packs");
    made_from.disk_gb = static_cast<int>(members.number("disk_gb", 0, 0, 100'000));
    made_from.memory_bytes_max =
        static_cast<std::uint64_t>(members.number("memory_mb", 0, 0, 100'000'000)) * kMegabyte;
    made_from.cpus_max = price(members, "cpus", 0);
    made_from.gpus = static_cast<int>(members.number("gpus", 1, 0, 16));
    made_from.per_gpu = static_cast<int>(members.number("per_gpu", 0, 1, 64));
    made_from.registry_user = members.text("registry_user");
    made_from.registry_password = members.secret("registry_password");
    if (made_from.registry_user.empty() != made_from.registry_password.empty()) {
        members.complain("has 'registry_user' or 'registry_password', which belong together");
    }
    pool.slots = static_cast<int>(members.number("slots", 1, 1, 64));
    pool.warm_up = read_workflow(members);
    if (auto done = members.done(); !done) {
        of_pool.complain("is not right: " + done.error().message);
    }
}

fleet::OfferWish read_offer(const YAML::Node& node, Members& of_pool, const std::string& pool) {
    fleet::OfferWish wish;
    if (!node.IsMap()) {
        of_pool.complain("has 'offers', each a map with 'provider'");
        return wish;
    }
    Members members(node, "an offer of the pool '" + pool + "'");
    wish.provider = members.needed("provider");
    wish.gpus = members.texts("gpus");
    wish.region = members.text("region");
    const std::string market = members.text("market", "on-demand");
    wish.market = market == "spot" ? fleet::Market::spot : fleet::Market::on_demand;
    if (market != "spot" && market != "on-demand") {
        members.complain("has 'market', which is spot or on-demand, not '" + market + "'");
    }
    if (!members.text("max_usd_per_hour").empty()) {
        wish.usd_per_hour_max = price(members, "max_usd_per_hour", 0);
    }
    if (auto done = members.done(); !done) {
        of_pool.complain("is not right: " + done.error().message);
    }
    return wish;
}

void read_offers(const YAML::Node& node, fleet::PoolSettings& pool, Members& members) {
    if (!node || !node.IsSequence() || node.size() == 0) {
        members.complain("needs 'offers', a list of at least one {provider: …}");
        return;
    }
    for (const YAML::Node& item : node) {
        pool.offers.push_back(read_offer(item, members, pool.name));
    }
}

// NAME, NAME_file with what it holds, or NAME_env with the variable that does.
Result<> read_option(const std::string& name, const YAML::Node& value, ProviderSetting& provider) {
    const auto underscore = name.rfind('_');
    const std::string secret = name.substr(0, underscore);
    const std::string way = underscore == std::string::npos ? "" : name.substr(underscore + 1);
    const auto given = joined(value);
    if (!given) {
        return invalid(
            "the provider '" + provider.name + "' has '" + name +
            "', which is a single value or a list of them"
        );
    }
    if (!is_secret(secret) || (way != "file" && way != "env")) {
        provider.options[name] = *given;
        return {};
    }
    const std::string& where = *given;
    std::string text;
    if (way == "env") {
        const char* found = std::getenv(where.c_str());
        text = found == nullptr ? "" : found;
    } else {
        std::ifstream stream(where, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(stream), {});
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
        text.pop_back();
    }
    if (text.empty()) {
        return invalid(
            "the provider '" + provider.name + "' has '" + name + "', but '" + where +
            "' cannot be read or is empty"
        );
    }
    provider.options[secret] = text;
    return {};
}

std::string show_size(const fleet::PoolSettings& pool) {
    const auto line = [](const char* name, auto value) {
        return "    " + std::string(name) + ": " + std::to_string(value) + "\n";
    };
    std::string out = !pool.scaling || pool.is_dry_run ? line("size", pool.size) : "";
    if (pool.scaling) {
        const auto in_seconds = [](Millis time) {
            return std::chrono::duration_cast<std::chrono::seconds>(time).count();
        };
        out += line("min", pool.scaling->min) + line("max", pool.scaling->max) +
               line("spare", pool.scaling->spare) +
               line("idle_timeout", in_seconds(pool.scaling->idle_timeout)) +
               line("up_cooldown", in_seconds(pool.scaling->up_cooldown)) +
               line("spot_wait", in_seconds(pool.scaling->spot_wait));
    }
    return out + (pool.is_dry_run ? "    dry_run: true\n" : "");
}

}  // namespace

Result<> read_providers(const YAML::Node& map, FleetConfig& config) {
    if (!map.IsMap()) {
        return invalid("'providers' must be a map of names, each with its 'kind' and settings");
    }
    config.providers.clear();
    for (const auto& entry : map) {
        ProviderSetting provider;
        provider.name = entry.first.as<std::string>();
        if (!is_pool_name(provider.name) || !entry.second.IsMap()) {
            return invalid(
                "the provider '" + provider.name +
                "' needs a name of small letters, digits, '.', '_' and '-', and a map with 'kind'"
            );
        }
        for (const auto& member : entry.second) {
            const std::string name = member.first.as<std::string>();
            if (name == "kind" && member.second.IsScalar()) {
                provider.kind = member.second.Scalar();
            } else if (auto read = read_option(name, member.second, provider); !read) {
                return read;
            }
        }
        config.providers.push_back(std::move(provider));
    }
    return {};
}

Result<> read_pool(const YAML::Node& item, FleetConfig& config) {
    if (!item.IsMap()) {
        return invalid("a pool is a map with 'name', 'template' and 'offers'");
    }
    const YAML::Node called = item["name"];
    Members members(
        item, "the pool '" + (called && called.IsScalar() ? called.Scalar() : "") + "'"
    );
    fleet::PoolSettings pool;
    pool.name = members.needed("name");
    if (!is_pool_name(pool.name)) {
        members.complain("needs a name of small letters, digits, '.', '_' and '-'");
    }
    read_scaling(members, pool);
    pool.parked = static_cast<int>(members.number("parked", 0, 0, kPoolSizeMax));
    pool.gpu_second_usd = price(members, "gpu_second_usd", 0);
    pool.start_max = std::chrono::seconds(members.number("start_max_s", 600, 10, 86'400));
    pool.drain_max = std::chrono::seconds(members.number("drain_max_s", 300, 0, 86'400));
    if (const YAML::Node node = members.node("template")) {
        read_template(node, pool, members);
    }
    read_offers(members.node("offers"), pool, members);
    if (auto done = members.done(); !done) {
        return done;
    }
    config.pools.push_back(std::move(pool));
    return {};
}

std::string show_fleet(const FleetConfig& config) {
    std::string out = config.providers.empty() ? "providers: {}\n" : "providers:\n";
    for (const ProviderSetting& provider : config.providers) {
        out += "  " + provider.name + ":\n    kind: \"" + provider.kind + "\"\n";
        for (const auto& [name, value] : provider.options) {
            out += "    " + name + ": \"" + (is_secret(name) ? "********" : value) + "\"\n";
        }
    }
    out += config.pools.empty() ? "pools: []\n" : "pools:\n";
    for (const fleet::PoolSettings& pool : config.pools) {
        out += "  - name: \"" + pool.name + "\"\n" + show_size(pool) +
               "    template:\n      image: \"" + pool.made_from.image + "\"\n    offers:\n";
        for (const fleet::OfferWish& wish : pool.offers) {
            out += "      - provider: \"" + wish.provider + "\"\n        market: \"" +
                   std::string(to_string(wish.market)) + "\"\n";
        }
    }
    return out;
}

}  // namespace comfyd::app
