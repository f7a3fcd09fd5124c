// What the keeper writes down: rows, the events that tell of them, and what became of the starts of
// a pool.
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::fleet {
namespace {

constexpr int kFailedStartsMax = 3;
constexpr int kPoolTries = 5;

}  // namespace

Task<bool> Keeper::save(Instance instance, std::optional<FleetEvent> event) {
    if (!may_act()) {
        co_return false;
    }
    const std::string id = instance.id;
    auto saved = co_await p_.store.save_instance(instance, std::move(event), p_.term);
    if (saved) {
        if (is_open(instance.state)) {
            rows_[id] = std::move(instance);
        } else {
            rows_.erase(id);
        }
        let_in(id);
        co_return true;
    }
    must_read_ = true;  // it may be stored all the same
    store_rests_ = p_.clock.now() + p_.times.tick;
    if (saved.error().code == Code::lead_lost) {
        is_over_ = true;
    } else if (saved.error().code != Code::cancelled) {
        log::warning(
            "what became of a machine could not be stored yet",
            {{"instance", id}, {"error", saved.error().message}}
        );
    }
    co_return false;
}

Task<bool> Keeper::move(
    Instance instance, InstanceState to, std::string why, std::string told, bool has_failed
) {
    auto next = moved(std::move(instance), to, p_.clock.now(), why);
    if (!next) {
        log::error("an instance cannot change", {{"error", next.error().message}});
        co_return false;
    }
    next->has_failed = next->has_failed || has_failed;
    log::info(
        "instance",
        {{"instance", next->id},
         {"pool", next->pool},
         {"state", to_string(to)},
         {"why", log::foreign(why)}}
    );
    auto about = event(std::move(told), std::move(why), *next);
    const bool saved = co_await save(std::move(*next), std::move(about));
    co_return saved;
}

FleetEvent Keeper::event(std::string what, std::string why, const Instance& of) const {
    FleetEvent made;
    made.at = p_.clock.now();
    made.fleet = p_.fleet;
    made.what = std::move(what);
    made.why = std::move(why);
    made.pool = of.pool;
    made.instance = of.id;
    made.provider = of.provider;
    return made;
}

// Losing one costs nothing but the knowledge of it.
Task<> Keeper::tell(FleetEvent event) {
    auto noted = co_await p_.store.note_fleet_event(std::move(event));
    if (!noted && noted.error().code != Code::cancelled) {
        log::warning("an event of the fleet is not noted", {{"error", noted.error().message}});
    }
}

// Operators write the same record: it is read again until nobody comes between.
Task<> Keeper::change_pool(std::string name, ChangePool change) {
    for (int tries = 0; tries < kPoolTries; ++tries) {
        co_await read_pools();
        PoolRecord record = records_[name];
        record.fleet = p_.fleet;
        record.name = name;
        auto told = change(record);
        record.revision += 1;
        auto saved = co_await p_.store.save_pool(record, std::move(told));
        if (saved) {
            records_[name] = std::move(record);
            co_return;
        }
        if (saved.error().code != Code::conflict) {
            log::warning(
                "what is known of a pool could not be stored",
                {{"pool", name}, {"error", saved.error().message}}
            );
            co_return;
        }
    }
}

Task<> Keeper::count_failed_start(Instance instance) {
    counts_.failed_starts += 1;
    pools_rest_.fail(instance.pool, p_.clock.now(), p_.chance());
    const PoolSettings* pool = pool_of(instance);
    if (pool == nullptr) {
        co_return;
    }
    const std::string mark = pool->mark();
    const ChangePool count = [this, instance, mark](PoolRecord& record) {
        record.failed_starts += 1;
        if (record.failed_starts < kFailedStartsMax) {
            return std::optional<FleetEvent>();
        }
        record.paused = mark;
        record.paused_why = std::to_string(record.failed_starts) +
                            " starts in a row failed, the last because: " + instance.reason;
        return std::optional(event("paused", record.paused_why, instance));
    };
    co_await change_pool(instance.pool, count);
}

Task<> Keeper::count_start(Instance instance) {
    counts_.starts += 1;
    if (const PoolSettings* pool = pool_of(instance)) {
        scaling_.note_start(*pool, instance);
    }
    pools_rest_.succeed(instance.pool);
    for (const auto& [phase, seconds] : start_phases(instance)) {
        counts_.phases[phase].note(seconds);
    }
    const auto record = records_.find(instance.pool);
    if (record != records_.end() && record->second.failed_starts > 0) {
        const ChangePool forget = [](PoolRecord& pool) {
            pool.failed_starts = 0;
            return std::optional<FleetEvent>();
        };
        co_await change_pool(instance.pool, forget);
    }
}

}  // namespace comfyd::fleet
