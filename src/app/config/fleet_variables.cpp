// The variables of other gateways that name a provider and one pool, and what must hold between
// providers and pools.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "agent/packs.hpp"
#include "app/config/fleet_config.hpp"
#include "app/config/settings.hpp"

namespace comfyd::app {
namespace {

class Variables {
public:
    explicit Variables(const Environment& environment) : environment_(environment) {}

    // One that is empty is not set, as in files of Docker Compose.
    std::string text(const std::string& name, std::string otherwise = {}) const {
        const auto found = environment_(name);
        return found && !found->empty() ? *found : std::move(otherwise);
    }
    int number(const std::string& name, int otherwise, int min, int max) {
        const auto found = environment_(name);
        if (!found || found->empty()) {
            return otherwise;
        }
        int value = 0;
        const char* end = found->data() + found->size();
        const auto read = std::from_chars(found->data(), end, value);
        if (read.ec != std::errc() || read.ptr != end || value < min || value > max) {
            complain(
                name + " is a whole number from " + std::to_string(min) + " to " +
                std::to_string(max) + ", not '" + *found + "'"
            );
        }
        return value;
    }
    void complain(std::string what) {
        if (complaint_.empty()) {
            complaint_ = std::move(what);
        }
    }
    Result<> done() const {
        return complaint_.empty() ? Result<>()
                                  : Result<>(invalid("environment variable " + complaint_));
    }

private:
    const Environment& environment_;
    std::string complaint_;
};

void read_novita(Variables& variables, ProviderSetting& provider, fleet::PoolSettings& pool) {
    provider.options["key"] = variables.text("NOVITA_API_KEY");
    if (provider.options["key"].empty()) {
        variables.complain("NOVITA_API_KEY is needed by WORKER_MANAGER=novita");
    }
    provider.options["base_url"] = variables.text("NOVITA_BASE_URL", "https://api.novita.ai");
    pool.made_from.image = variables.text("NOVITA_IMAGE_URL", pool.made_from.image);
    if (pool.made_from.image.empty()) {
        variables.complain("NOVITA_IMAGE_URL (or IMAGE) is needed by WORKER_MANAGER=novita");
    }
    pool.made_from.gpus = variables.number("NOVITA_GPU_NUM", 1, 1, 8);
    pool.made_from.disk_gb = variables.number("NOVITA_ROOTFS_SIZE", 50, 10, 6'144);
    pool.start_max = std::chrono::seconds(variables.number("NOVITA_TIMEOUT", 1'800, 10, 86'400));
}

autoscale::Settings read_scaling(Variables& variables) {
    autoscale::Settings scaling;
    scaling.min = variables.number("MIN_WORKERS", 1, 0, kPoolSizeMax);
    scaling.max =
        variables.number("MAX_WORKERS", std::max(scaling.max, scaling.min), 1, kPoolSizeMax);
    if (scaling.max < scaling.min) {
        variables.complain("MAX_WORKERS is less than MIN_WORKERS");
    }
    scaling.idle_timeout = std::chrono::seconds(variables.number("IDLE_TIMEOUT", 300, 0, 86'400));
    scaling.up_cooldown =
        std::chrono::seconds(variables.number("SCALE_UP_COOLDOWN", 60, 0, 86'400));
    return scaling;
}

// Before anything is started for them.
Result<> check_packs(
    const fleet::PoolSettings& pool, const std::vector<std::string>& packs_allowed
) {
    const std::string where = "'packs' in the template of the pool '" + pool.name + "' ";
    for (const std::string& pack : pool.made_from.packs) {
        if (pack.empty() || pack.find_first_of(" \t\n") != std::string::npos) {
            return invalid(where + "names '" + pack + "', which is empty or has a space in it");
        }
    }
    const auto packs = agent::read_packs(agent::join_packs(pool.made_from.packs));
    const auto checked = packs ? agent::check_packs(*packs, {.allowed = packs_allowed})
                               : Result<>(fail(packs.error()));
    if (checked) {
        return {};
    }
    const bool is_forbidden = checked.error().code == Code::forbidden;
    return invalid(
        where + "cannot be used: " + checked.error().message +
        (is_forbidden ? " (fleet.packs_allowed)" : "")
    );
}

}  // namespace

Result<> read_fleet_variables(const Environment& environment, FleetConfig& config) {
    Variables variables(environment);
    const std::string kind = variables.text("WORKER_MANAGER");
    if (kind.empty()) {
        return {};
    }
    ProviderSetting provider;
    provider.name = provider.kind = kind;
    fleet::PoolSettings pool;
    pool.name = "default";
    pool.made_from.image = variables.text("IMAGE");
    pool.scaling = read_scaling(variables);
    const int first = variables.number("PORT_RANGE_START", 8188, 1, 65'535);
    const int last = variables.number("PORT_RANGE_END", 8288, 1, 65'535);
    if (last < first) {
        variables.complain("PORT_RANGE_END is less than PORT_RANGE_START");
    }
    if (kind == "novita") {
        read_novita(variables, provider, pool);
    } else if (kind == "docker") {
        provider.options["ports"] = std::to_string(first) + "-" + std::to_string(last);
        if (pool.made_from.image.empty()) {
            variables.complain("IMAGE is needed by WORKER_MANAGER=docker");
        }
    } else {
        variables.complain(
            "WORKER_MANAGER is docker or novita, not '" + kind +
            "'; other kinds of providers are for the configuration file (docs/fleet.md)"
        );
    }
    pool.offers.push_back({provider.name, {}});
    if (const std::string product = variables.text("NOVITA_PRODUCT_ID"); !product.empty()) {
        pool.offers.back().gpus = {product};
    }
    if (auto done = variables.done(); !done) {
        return done;
    }
    const auto has_name = [](const std::string& name) {
        return [name](const auto& other) { return other.name == name; };
    };
    if (std::ranges::any_of(config.providers, has_name(provider.name)) ||
        std::ranges::any_of(config.pools, has_name(pool.name))) {
        return invalid(
            "environment variable WORKER_MANAGER names a provider '" + provider.name +
            "' and a pool 'default', which the configuration file has already; say it in one place"
        );
    }
    config.providers.push_back(std::move(provider));
    config.pools.push_back(std::move(pool));
    return {};
}

Result<> check_fleet(const FleetConfig& config, const std::vector<std::string>& packs_allowed) {
    std::map<std::string, std::string> kinds;  // by provider
    for (const ProviderSetting& provider : config.providers) {
        if (provider.kind.empty()) {
            return invalid("the provider '" + provider.name + "' needs 'kind'");
        }
        kinds[provider.name] = provider.kind;
    }
    std::set<std::string> pools;
    for (const fleet::PoolSettings& pool : config.pools) {
        if (!pools.insert(pool.name).second) {
            return invalid("there are two pools '" + pool.name + "'");
        }
        if (auto checked = check_packs(pool, packs_allowed); !checked) {
            return checked;
        }
        for (const fleet::OfferWish& wish : pool.offers) {
            const auto kind = kinds.find(wish.provider);
            if (kind == kinds.end()) {
                return invalid(
                    "the pool '" + pool.name + "' has an offer of the provider '" + wish.provider +
                    "', which is not one of 'providers'"
                );
            }
            if (kind->second != "process" && pool.made_from.image.empty()) {
                return invalid(
                    "the pool '" + pool.name +
                    "' needs 'template' with 'image': what machines of "
                    "the provider '" +
                    wish.provider + "' are made from"
                );
            }
        }
    }
    return {};
}

}  // namespace comfyd::app
