#include "fleet/instances/pool_settings.hpp"

#include "base/crypto.hpp"
#include "base/json.hpp"

namespace comfyd::fleet {

std::string PoolSettings::mark() const {
    constexpr std::size_t kDigits = 16;
    json::object environment;
    for (const auto& [variable, value] : made_from.environment) {
        environment[variable] = value;
    }
    json::array wishes;
    for (const OfferWish& wish : offers) {
        wishes.emplace_back(json::object{
            {"provider", wish.provider},
            {"gpus", json::array(wish.gpus.begin(), wish.gpus.end())},
            {"region", wish.region},
            {"market", to_string(wish.market)},
        });
    }
    const json::object all{
        {"image", made_from.image},
        {"command", json::array(made_from.command.begin(), made_from.command.end())},
        {"environment", std::move(environment)},
        {"packs", json::array(made_from.packs.begin(), made_from.packs.end())},
        {"disk_gb", made_from.disk_gb},
        {"memory", static_cast<std::int64_t>(made_from.memory_bytes_max)},
        {"cpus", made_from.cpus_max},
        {"gpus", made_from.gpus},
        {"per_gpu", made_from.per_gpu},
        {"warm_up", warm_up},
        {"offers", std::move(wishes)},
    };
    return to_hex(sha256(json::serialize(all))).substr(0, kDigits);
}

}  // namespace comfyd::fleet
