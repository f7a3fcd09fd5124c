// What tells whether machines of a pool can run what those of before could.
#include <algorithm>

#include "app/config/fleet_config.hpp"
#include "base/crypto.hpp"
#include "base/json.hpp"

namespace comfyd::app {

std::string software_of(const FleetConfig& config, const fleet::PoolSettings& pool) {
    constexpr std::size_t kDigits = 16;
    const fleet::MachineTemplate& made_from = pool.made_from;
    json::object variables;
    for (const auto& [name, value] : made_from.environment) {
        variables[name] = value;
    }
    json::array local;
    for (const fleet::OfferWish& wish : pool.offers) {
        const auto place =
            std::ranges::find(config.providers, wish.provider, &ProviderSetting::name);
        for (const char* option : {"dir", "packs"}) {
            if (place != config.providers.end() && place->kind == "process" &&
                place->options.contains(option)) {
                local.emplace_back(place->options.at(option));
            }
        }
    }
    const json::object all{
        {"image", made_from.image},
        {"command", json::array(made_from.command.begin(), made_from.command.end())},
        {"variables", std::move(variables)},
        {"packs", json::array(made_from.packs.begin(), made_from.packs.end())},
        {"local", std::move(local)},
    };
    return to_hex(sha256(json::serialize(all))).substr(0, kDigits);
}

}  // namespace comfyd::app
