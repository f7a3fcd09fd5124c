// How a machine is given up: its jobs end or go back, its provider removes it, and its row ends.
#include <algorithm>
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::fleet {

using enum InstanceState;

Task<> Keeper::drain(Step step) {
    Instance instance = *find(step.instance);
    if (instance.state == ready) {
        instance.parks = step.to == parked;
        const bool saved = co_await move(std::move(instance), draining, step.why, "draining");
        if (!saved) {
            co_return;
        }
        instance = *find(step.instance);
    }
    const PoolSettings* pool = pool_of(instance);
    Millis patience = pool == nullptr ? PoolSettings().drain_max : pool->drain_max;
    if (step.machine && step.machine->reclaimed_at) {
        constexpr Millis kSpare{5'000};  // to give back in time what does not end
        const Millis left = *step.machine->reclaimed_at - p_.clock.now() - kSpare;
        patience = std::clamp(left, Millis(0), patience);
    }
    auto let_go = co_await p_.crew.dismiss(instance.worker(), patience);
    if (!let_go && let_go.error().code != Code::not_found) {
        co_return;  // stopped, or somebody else does it: looked at again
    }
    aside_[step.instance].is_employed = false;
    aside_[step.instance].switched_at.reset();
    const InstanceState to = instance.parks ? parked : removing;
    co_await move(*find(step.instance), to, instance.reason, std::string(to_string(to)));
}

Task<> Keeper::leave(Step step) {
    Instance instance = *find(step.instance);
    const bool saved = co_await move(
        std::move(instance),
        removing,
        step.why,
        step.has_failed ? "failing" : "removing",
        step.has_failed
    );
    if (!saved) {
        co_return;
    }
    if (step.counts) {
        co_await count_failed_start(*find(step.instance));
    }
    if (aside_[step.instance].is_employed) {
        auto let_go = co_await p_.crew.dismiss(find(step.instance)->worker(), Millis(0));
        aside_[step.instance].is_employed = !let_go && let_go.error().code != Code::not_found;
    }
}

Task<> Keeper::remove(Step step) {
    const Instance instance = *find(step.instance);
    if (aside_[step.instance].is_employed) {
        auto let_go = co_await p_.crew.dismiss(instance.worker(), Millis(0));
        aside_[step.instance].is_employed = !let_go && let_go.error().code != Code::not_found;
    }
    MachineProvider* of = provider(instance.provider);
    if (of == nullptr || !may_act()) {
        if (of == nullptr) {
            removals_.fail(instance.id, p_.clock.now(), p_.chance());
            aside_[instance.id].rests_until = removals_.until(instance.id);
            log::error(
                "a machine cannot be removed: its provider is not configured any more",
                {{"instance", instance.id},
                 {"provider", instance.provider},
                 {"machine", instance.machine}}
            );
        }
        co_return;
    }
    auto removed = co_await of->remove(instance.machine);
    if (removed) {
        aside_[instance.id].removed_at = p_.clock.now();
        list_now_.at(instance.provider)->notify();
        co_return;
    }
    if (removed.error().code == Code::cancelled) {
        co_return;
    }
    removals_.fail(instance.id, p_.clock.now(), p_.chance());
    aside_[instance.id].rests_until = removals_.until(instance.id);
    log::warning(
        "a machine was not removed yet",
        {{"instance", instance.id},
         {"provider", instance.provider},
         {"error", log::foreign(removed.error().message)}}
    );
    auto told = event("not_removed", removed.error().message, instance);
    co_await tell(std::move(told));
}

Task<> Keeper::end(Step step) {
    Instance instance = *find(step.instance);
    const InstanceState to = step.has_failed ? failed : gone;
    const bool saved =
        co_await move(instance, to, step.why, std::string(to_string(to)), step.has_failed);
    if (!saved) {
        co_return;
    }
    if (const auto record = records_.find(instance.pool);
        record != records_.end() && record->second.leaving.contains(instance.id)) {
        const std::string id = instance.id;
        const ChangePool forget = [id](PoolRecord& pool) {
            pool.leaving.erase(id);
            return std::optional<FleetEvent>();
        };
        co_await change_pool(instance.pool, forget);
    }
}

Task<> Keeper::remove_stray(Step step) {
    if (!may_act()) {
        co_return;
    }
    auto removed = co_await provider(step.provider)->remove(step.machine->id);
    Instance unknown;
    unknown.id = step.instance;
    unknown.provider = step.provider;
    log::warning(
        "a machine that no instance knows is removed",
        {{"provider", step.provider}, {"machine", step.machine->name}, {"done", removed.has_value()}
        }
    );
    if (removed) {
        counts_.strays_removed += 1;
        auto told = event("stray_removed", step.why, unknown);
        co_await tell(std::move(told));
    }
}

}  // namespace comfyd::fleet
