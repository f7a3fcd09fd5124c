// What budgets say: to whoever listens to events, and to those whose jobs wait.
#include <cmath>
#include <utility>

#include "fleet/instances/scaling.hpp"

namespace comfyd::fleet {
namespace {

constexpr double kWarnAt = 0.8;

}  // namespace

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
    std::erase_if(kept.warned, [&sight](const auto& one) { return one.second <= sight.now; });
    if (pool.scaling) {
        const auto own = {static_cast<const autoscale::Spending*>(&kept.memory.spent)};
        for (const auto& limit : autoscale::limits(pool.scaling->budget, own, sight.now)) {
            tell_budget(pool, "the pool", limit, kept, sight.now);
        }
    }
    if (pool.name == sight.pools.begin()->first) {
        for (const auto& limit : autoscale::limits(of_fleet_, all_spent(sight), sight.now)) {
            tell_budget(pool, "the fleet", limit, kept, sight.now);
        }
    }
}

// Once at each level.
void Scaling::tell_budget(
    const PoolSettings& pool,
    const std::string& whose,
    const autoscale::Tightest& budget,
    Kept& kept,
    Time now
) {
    const bool is_spent = budget.part() >= 1;
    const std::string span(to_string(budget.span));
    const std::string level = is_spent ? "/spent" : "/low";
    if (budget.part() < kWarnAt ||
        !kept.warned.emplace(whose + "/" + span + level, budget.until).second) {
        return;
    }
    const std::string percent = std::to_string(std::lround(budget.part() * 100));
    kept.events.push_back(event_of(
        pool,
        is_spent ? "budget_spent" : "budget_low",
        whose + " has spent " + percent + " % of what it may in a " + span,
        now
    ));
    kept.events.back().details = {
        {"limit_usd", budget.limit_usd},
        {"spent_usd", budget.spent_usd},
        {"until", to_rfc3339(budget.until)},
    };
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
