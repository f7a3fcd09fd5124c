// What budgets say: to whoever listens to events, and to those whose jobs wait.
#include <utility>

#include "fleet/instances/scaling.hpp"

namespace comfyd::fleet {
FleetEvent Scaling::event_of(
    const PoolSettings& pool, std::string what, std::string why, Time now
) {
    FleetEvent event;
    event.at = now;
    event.what = std::move(what);
    event.why = std::move(why);
    event.pool = pool.name;
    return event;
}

std::vector<const autoscale::Spending*> Scaling::all_spent(const Sight& sight) const {
    std::vector<const autoscale::Spending*> all;
    for (const auto& [name, pool] : sight.pools) {
        all.push_back(&kept_.at(name).memory.spent);
    }
    for (const auto& [name, spent] : elsewhere_) {
        all.push_back(&spent);
    }
    return all;
}

// Those of the fleet go with its first pool.
void Scaling::tell_budgets(const PoolSettings& pool, const Sight& sight) {
    Kept& kept = kept_.at(pool.name);
    const Time now = sight.now;
    if (pool.scaling) {
        const auto own = {static_cast<const autoscale::Spending*>(&kept.memory.spent)};
        const auto limits = autoscale::limits(pool.scaling->budget, own, now);
        tell_limits(pool, "the pool", limits, kept, now);
    }
    if (pool.name == sight.pools.begin()->first) {
        const auto limits = autoscale::limits(of_fleet_, all_spent(sight), now);
        tell_limits(pool, "the fleet", limits, kept, now);
    }
}

void Scaling::tell_limits(
    const PoolSettings& pool,
    const std::string& whose,
    const std::vector<autoscale::Tightest>& limits,
    Kept& kept,
    Time now
) {
    for (autoscale::LimitNews& news : kept.warned.take_news(whose, limits, now)) {
        kept.events.push_back(
            event_of(pool, std::string(news.what()), std::move(news.sentence), now)
        );
        kept.events.back().details = news.details();
    }
}

// Nothing of what others ask for or may spend.
std::map<std::string, std::string> Scaling::hindrances() const {
    std::map<std::string, std::string> all;
    for (const auto& [pool, kept] : kept_) {
        if (!kept.latest || kept.latest->why != autoscale::Why::budget) {
            continue;
        }
        const std::string begin = "no machine is started in the pool '" + pool + "', because ";
        all[pool] = kept.latest->numbers.is_spent && kept.money.budget
                        ? begin + "its budget is spent; it goes on at " +
                              to_rfc3339(kept.money.budget->until)
                        : begin + "its machines may not cost more in an hour than they do";
    }
    return all;
}

}  // namespace comfyd::fleet
