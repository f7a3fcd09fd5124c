#include "fleet/instances/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/gpu_name.hpp"
#include "fleet/instances/start_phases.hpp"
#include "fleet/instances/wants.hpp"

namespace comfyd::fleet {
namespace {

using autoscale::Why;
using enum InstanceState;

constexpr Millis kStoreEvery = std::chrono::minutes(1);
constexpr Millis kStuckToldEvery = std::chrono::minutes(10);
constexpr double kSecondsPerHour = 3600;
constexpr char kDefaultPool[] = "default";

const json::object& object_in(const json::object& about, std::string_view key) {
    static const json::object kNone;
    const auto found = json::find_object(about, key);
    return found && *found != nullptr ? **found : kNone;
}

// An offer as start times and prices are remembered for it.
std::string label_of(const OfferWish& wish) {
    std::string label = wish.provider + "/" + std::string(to_string(wish.market));
    for (const std::string& gpu : wish.gpus) {
        label += "/" + gpu;
    }
    return wish.region.empty() ? label : label + "@" + wish.region;
}

// The one that a machine came from.
std::string label_of(const PoolSettings& pool, const Instance& instance) {
    for (const OfferWish& wish : pool.offers) {
        const bool is_gpu_of =
            wish.gpus.empty() || std::ranges::any_of(wish.gpus, [&](const std::string& gpu) {
                return is_gpu(gpu, instance.offer.gpu);
            });
        if (wish.provider == instance.provider && wish.market == instance.offer.market &&
            is_gpu_of) {
            return label_of(wish);
        }
    }
    return instance.provider;
}

// Of the GPU that is asked for first.
std::optional<double> speed_of(
    const OfferWish& wish, const std::map<std::string, double>& gpu_speeds
) {
    for (const auto& [gpu, speed] : gpu_speeds) {
        if (!wish.gpus.empty() && is_gpu(wish.gpus.front(), gpu)) {
            return speed;
        }
    }
    return std::nullopt;
}

double price_of(const PoolSettings& pool, const Instance& instance) {
    return instance.offer.usd_per_hour.value_or(pool.gpu_second_usd * kSecondsPerHour);
}

// Of one that is stopped nobody tells what its disk costs; it is little beside the rest.
bool costs(const Instance& instance) {
    return instance.state > requested && instance.state != InstanceState::parked &&
           is_open(instance.state);
}

// Jobs that name no pool are those of the pool "default", and where there is none, of the first.
bool is_work_of(
    const std::string& pool,
    const MachineWish& machine,
    const std::map<std::string, PoolSettings>& pools
) {
    const std::string rest = pools.contains(kDefaultPool) ? kDefaultPool : pools.begin()->first;
    return machine.pool == pool || (machine.pool.empty() && pool == rest);
}

json::object details_of(const autoscale::Decision& decision, bool is_dry_run) {
    json::object details{
        {"machines", decision.machines},
        {"were", decision.were},
        {"because", to_string(decision.why)},
        {"numbers", decision.numbers.to_json()},
    };
    if (is_dry_run) {
        details["dry_run"] = true;
    }
    return details;
}

// What a pool's workers do, by their ids.
using Uses = std::map<std::string_view, const jobs::Load::Use*>;

Uses uses_of(const std::string& pool, const jobs::Load& load) {
    Uses uses;
    for (const jobs::Load::Use& use : load.workers) {
        if (use.pool == pool) {
            uses[use.worker] = &use;
        }
    }
    return uses;
}

}  // namespace

autoscale::Memory scaling_memory(const PoolRecord& record) {
    return autoscale::Memory::from_json(object_in(record.scaling, "memory"));
}

void Scaling::look(const Sight& sight) {
    for (const auto& [name, pool] : sight.pools) {
        recall(name, sight);
        count_costs(pool, kept_[name], sight);
    }
    for (const auto& [name, record] : sight.records) {
        if (!sight.pools.contains(name)) {
            elsewhere_[name] = scaling_memory(record).spent;
        }
    }
    for (const auto& [name, pool] : sight.pools) {
        Kept& kept = kept_[name];
        tell_budgets(pool, sight);
        if (!pool.scaling) {
            continue;
        }
        const autoscale::PoolView view = view_of(pool, sight);
        kept.latest = autoscale::decide(view, kept.memory, sight.now);
        const auto record = sight.records.find(name);
        const bool is_set = record != sight.records.end() && record->second.size &&
                            record->second.size_configured == pool.size;
        if (!is_set) {
            tell(pool, kept, sight.now);
        }
        kept.money.budget = view.budget;
    }
}

void Scaling::recall(const std::string& pool, const Sight& sight) {
    const auto [known, is_new] = kept_.try_emplace(pool);
    const auto record = sight.records.find(pool);
    if (!is_new || record == sight.records.end()) {
        return;
    }
    Kept& kept = known->second;
    const json::object& stored = record->second.scaling;
    kept.memory = scaling_memory(record->second);
    for (const auto& price : object_in(stored, "prices")) {
        if (price.value().is_number()) {
            kept.prices[price.key()] = price.value().to_number<double>();
        }
    }
    if (const auto until = json::find_int(stored, "counted_until"); until && *until) {
        kept.counted_until = from_unix_ms(**until);
    }
    kept.warned = autoscale::ToldLimits::from_json(object_in(stored, "warned"));
}

// Also for the time in which nobody looked: what is open now was so then.
void Scaling::count_costs(const PoolSettings& pool, Kept& kept, const Sight& sight) {
    const Uses uses = uses_of(pool.name, sight.load);
    std::set<std::string> counted;
    for (const auto& [id, row] : sight.rows) {
        if (row.pool != pool.name || !costs(row)) {
            continue;
        }
        counted.insert(id);
        const Time since = row.when(creating).value_or(sight.now);
        const Time from = std::max(since, kept.counted_until.value_or(since));
        const double price = price_of(pool, row);
        kept.memory.spent.add(from, sight.now, price);
        const double usd = std::max(0.0, std::chrono::duration<double>(sight.now - from).count()) *
                           price / kSecondsPerHour;
        kept.money.spent_usd += usd;
        const auto use = uses.find(row.worker());
        if (row.state == ready && use != uses.end() && use->second->jobs == 0) {
            kept.money.idle_usd += usd;
        }
        if (row.offer.usd_per_hour) {
            kept.prices[label_of(pool, row)] = *row.offer.usd_per_hour;
        }
    }
    for (const std::string& id : kept.counted) {
        kept.is_changed = kept.is_changed || !counted.contains(id);
    }
    kept.counted = std::move(counted);
    kept.counted_until = sight.now;
}

autoscale::PoolView Scaling::view_of(const PoolSettings& pool, const Sight& sight) const {
    autoscale::PoolView view;
    view.name = pool.name;
    view.settings = *pool.scaling;
    view.settings.slots = pool.slots;
    const Kept& kept = kept_.at(pool.name);
    bool are_speeds_known = true;
    for (const OfferWish& wish : pool.offers) {
        autoscale::Offer& offer = view.offers.emplace_back();
        offer.place = label_of(wish);
        offer.is_spot = wish.market == Market::spot;
        if (const auto speed = speed_of(wish, sight.load.gpu_speeds)) {
            offer.speed = *speed;
        } else {
            are_speeds_known = false;
        }
        if (const auto known = kept.prices.find(offer.place); known != kept.prices.end()) {
            offer.usd_per_hour = known->second;
        } else if (wish.usd_per_hour_max) {
            offer.usd_per_hour = wish.usd_per_hour_max;  // it will not be more
        } else if (pool.gpu_second_usd > 0) {
            offer.usd_per_hour = pool.gpu_second_usd * kSecondsPerHour;
        }
    }
    for (autoscale::Offer& offer : view.offers) {
        offer.speed = are_speeds_known ? offer.speed : 1;  // one alone says nothing
    }
    add_machines(pool, sight, view);
    add_work(pool, sight, view);
    add_budget(pool, sight, view);
    return view;
}

void Scaling::add_machines(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view)
    const {
    const autoscale::Memory& memory = kept_.at(pool.name).memory;
    std::set<std::string> leaving;
    if (const auto record = sight.records.find(pool.name); record != sight.records.end()) {
        leaving = record->second.leaving;
    }
    Uses uses = uses_of(pool.name, sight.load);
    for (const auto& [id, row] : sight.rows) {
        if (row.pool != pool.name) {
            continue;
        }
        const std::string worker = row.worker();
        const auto use = uses.find(worker);
        if (is_wanted(row.state) && !leaving.contains(id)) {
            autoscale::Machine& machine = view.machines.emplace_back();
            machine.is_ready = row.state == ready;
            machine.usd_per_hour = price_of(pool, row);
            const Time since = row.begun().value_or(sight.now);
            const double age_s = std::chrono::duration<double>(sight.now - since).count();
            const autoscale::Starts& starts = row.is_woken() ? memory.wakes : memory.starts;
            machine.ready_in_s =
                machine.is_ready ? 0
                                 : std::max(0.0, starts.seconds(label_of(pool, row), 0.5) - age_s);
            if (use != uses.end()) {
                machine.best_effort = static_cast<int>(use->second->best_effort);
                machine.jobs = static_cast<int>(use->second->jobs) - machine.best_effort;
                machine.left_s = use->second->seconds;
            }
        }
        if (use != uses.end()) {
            uses.erase(use);
        }
    }
    if (const auto pending = sight.requesting.find(pool.name); pending != sight.requesting.end()) {
        const autoscale::Machine coming{.ready_in_s = memory.starts.seconds(0.5)};
        view.machines.insert(
            view.machines.end(), static_cast<std::size_t>(std::max(pending->second, 0)), coming
        );
    }
    for (const auto& [worker, use] : uses) {
        const bool serves =
            use->status == jobs::WorkerStatus::idle || use->status == jobs::WorkerStatus::running;
        view.others += serves ? use->slots : 0;
    }
}

void Scaling::add_work(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view)
    const {
    const bool has_ready =
        view.others > 0 || std::ranges::any_of(view.machines, &autoscale::Machine::is_ready);
    for (const scheduler::Backlog& kind : sight.load.backlog) {
        if (!is_work_of(pool.name, kind.machine, sight.pools)) {
            continue;
        }
        autoscale::Work& work = view.waiting.emplace_back();
        work.wait_class = kind.wait_class;
        work.model = kind.model;
        work.load_s = kind.load_s;
        work.jobs = kind.waiting.jobs;
        work.seconds = kind.waiting.seconds;
        const bool is_particular = Requirement().on(kind.machine).is_particular();
        const bool may_be_had = !places_for(pool.offers, kind.machine).empty();
        work.is_for_others = !kind.is_served && is_particular && may_be_had;
        // While no machine is ready, nobody knows what they can; what is served all the same is
        // served by the engine.
        work.is_runnable = has_ready ? kind.is_served : !kind.is_served && !is_particular;
    }
    for (const auto& [name, seconds] : sight.load.arrived_s) {
        MachineWish machine;
        machine.pool = name;
        view.arrived_s += is_work_of(pool.name, machine, sight.pools) ? seconds : 0;
    }
}

void Scaling::add_budget(const PoolSettings& pool, const Sight& sight, autoscale::PoolView& view)
    const {
    const autoscale::Budget& own = pool.scaling->budget;
    view.budget = autoscale::tightest(own, {&kept_.at(pool.name).memory.spent}, sight.now);
    view.budget_of = "the pool";
    const auto of_fleet = autoscale::tightest(of_fleet_, all_spent(sight), sight.now);
    if (of_fleet && (!view.budget || of_fleet->part() > view.budget->part())) {
        view.budget = of_fleet;
        view.budget_of = "the fleet";
    }
    view.usd_per_hour_max = own.usd_per_hour;
    if (of_fleet_.usd_per_hour > 0) {
        double left = of_fleet_.usd_per_hour;
        for (const auto& [id, row] : sight.rows) {
            const auto settings = sight.pools.find(row.pool);
            const bool is_other = row.pool != pool.name && settings != sight.pools.end();
            left -= is_other && costs(row) ? price_of(settings->second, row) : 0;
        }
        constexpr double kNothing = 1e-9;
        left = std::max(left, kNothing);
        view.usd_per_hour_max =
            view.usd_per_hour_max > 0 ? std::min(view.usd_per_hour_max, left) : left;
    }
}

// What cannot be is told again after a while.
void Scaling::tell(const PoolSettings& pool, Kept& kept, Time now) {
    const autoscale::Decision& decision = *kept.latest;
    const bool is_stuck =
        decision.why == Why::most || decision.why == Why::budget || decision.why == Why::no_use;
    const std::optional<int> target =
        decision.machines != decision.were ? std::optional(decision.machines) : std::nullopt;
    const bool is_new = target && target != kept.told;
    const bool was_told = kept.stuck == decision.why && now - kept.stuck_told_at < kStuckToldEvery;
    const bool is_newly_stuck = is_stuck && !target && !was_told;
    kept.told = target;
    if (is_newly_stuck) {
        kept.stuck = decision.why;
        kept.stuck_told_at = now;
    }
    if (is_new || is_newly_stuck) {
        kept.events.push_back(event_of(pool, "scaled", decision.sentence, now));
        kept.events.back().details = details_of(decision, pool.is_dry_run);
    }
}

void Scaling::note_start(const PoolSettings& pool, const Instance& instance) {
    autoscale::Memory& memory = kept_[pool.name].memory;
    const bool is_woken = instance.when(parked).has_value();
    const auto begun = instance.when(is_woken ? starting : creating);
    const auto served = instance.when(ready);
    if (begun && served) {
        (is_woken ? memory.wakes : memory.starts)
            .note(
                label_of(pool, instance), std::chrono::duration<double>(*served - *begun).count()
            );
    }
    for (const auto& [phase, seconds] : fleet::start_phases(instance)) {
        if (!is_woken) {
            memory.phases.note(std::string(to_string(phase)), seconds);
        }
    }
}

std::map<std::string, json::object> Scaling::start_phases() const {
    std::map<std::string, json::object> all;
    for (const auto& [pool, kept] : kept_) {
        all[pool] = kept.memory.phases.shown();
    }
    return all;
}

bool Scaling::parking_pays(const std::string& pool) const {
    constexpr std::size_t kLeast = 3;
    const auto kept = kept_.find(pool);
    if (kept == kept_.end()) {
        return true;
    }
    const autoscale::Memory& memory = kept->second.memory;
    const bool are_known = memory.starts.known() >= kLeast && memory.wakes.known() >= kLeast;
    return !are_known || memory.wakes.seconds(0.5) < memory.starts.seconds(0.5);
}

const autoscale::Decision* Scaling::decision(const std::string& pool) const {
    const auto found = kept_.find(pool);
    return found == kept_.end() || !found->second.latest ? nullptr : &*found->second.latest;
}

std::vector<Scaling::Due> Scaling::take_due(Time now) {
    std::vector<Due> due;
    for (auto& [pool, kept] : kept_) {
        const bool is_late = !kept.stored_at || now - *kept.stored_at >= kStoreEvery;
        const bool is_used =
            !kept.counted.empty() || kept.memory.arrived_s != kept.arrived_s_stored;
        if (!kept.events.empty() || kept.is_changed || (is_late && is_used)) {
            due.push_back({pool, std::exchange(kept.events, {})});
            kept.is_changed = false;
            kept.stored_at = now;
            kept.arrived_s_stored = kept.memory.arrived_s;
        }
    }
    return due;
}

json::object Scaling::to_store(const std::string& pool) const {
    const Kept& kept = kept_.at(pool);
    json::object prices;
    for (const auto& [offer, price] : kept.prices) {
        prices[offer] = price;
    }
    return {
        {"memory", kept.memory.to_json()},
        {"prices", std::move(prices)},
        {"counted_until", to_unix_ms(kept.counted_until.value_or(Time()))},
        {"warned", kept.warned.to_json()},
    };
}

std::map<std::string, Scaling::Money> Scaling::money() const {
    std::map<std::string, Money> all;
    for (const auto& [pool, kept] : kept_) {
        all[pool] = kept.money;
    }
    return all;
}

}  // namespace comfyd::fleet
