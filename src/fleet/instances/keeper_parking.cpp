// Machines that are stopped and started again, where their providers keep the disks. Both deeds may
// be told again at any time: what shall be of a machine is stored before its provider is told.
#include <utility>

#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "fleet/instances/keeper.hpp"

namespace comfyd::fleet {

using enum InstanceState;

Task<> Keeper::park(Step step) {
    if (!may_act()) {
        co_return;
    }
    const Instance instance = *find(step.instance);
    auto stopped = co_await provider(instance.provider)->stop(instance.machine);
    if (!stopped) {
        co_await fail_switch(std::move(step), std::move(stopped.error()));
        co_return;
    }
    aside_[instance.id].switched_at = p_.clock.now();
    switches_.succeed(instance.id);
    list_now_.at(instance.provider)->notify();
}

Task<> Keeper::wake(Step step) {
    if (find(step.instance)->state == parked) {
        const bool saved = co_await move(*find(step.instance), starting, step.why, "starting");
        if (!saved) {
            co_return;
        }
    }
    if (!may_act()) {
        co_return;
    }
    const Instance instance = *find(step.instance);
    auto started = co_await provider(instance.provider)->start(instance.machine);
    if (!started) {
        co_await fail_switch(std::move(step), std::move(started.error()));
        co_return;
    }
    aside_[instance.id].switched_at = p_.clock.now();
    switches_.succeed(instance.id);
    list_now_.at(instance.provider)->notify();
}

// One that cannot be started again, as its GPU is somebody else's by now, makes room for another.
Task<> Keeper::fail_switch(Step step, Error error) {
    const Instance instance = *find(step.instance);
    const bool cannot_be = error.code == Code::out_of_stock || error.code == Code::not_found ||
                           error.code == Code::invalid_argument;
    if (error.code == Code::cancelled) {
        co_return;
    }
    log::warning(
        "a machine was not stopped or started yet",
        {{"instance", instance.id},
         {"provider", instance.provider},
         {"code", to_string(error.code)},
         {"error", log::foreign(error.message)}}
    );
    if (cannot_be) {
        step.why =
            (instance.state == parked ? "it cannot be stopped: " : "it cannot be started again: ") +
            error.message;
        co_await leave(std::move(step));
        co_return;
    }
    auto told = event(rest_provider(instance.provider, error), error.message, instance);
    co_await tell(std::move(told));
    switches_.fail(instance.id, p_.clock.now(), p_.chance());
    aside_[instance.id].rests_until = switches_.until(instance.id);
}

}  // namespace comfyd::fleet
