// What waits, by the machines that it wants, and what each worker does.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "scheduler/scheduler_impl.hpp"

namespace comfyd::scheduler {

std::vector<Demand> Scheduler::Impl::demands() const {
    std::map<std::string_view, Demand> by_machine;
    const auto& waiting = order_.waiting_by_requirement();
    for (Index at = 0; at < waiting.size(); ++at) {
        if (waiting[at].jobs == 0) {
            continue;
        }
        const Requirement& requirement = profiles_.requirement(at);
        Demand& demand = by_machine[requirement.machine_text()];
        const bool is_first = demand.waiting.jobs == 0;
        demand.machine = is_first ? requirement.machine() : std::move(demand.machine);
        demand.waiting.jobs += waiting[at].jobs;
        demand.waiting.seconds += waiting[at].seconds;
        bool is_served = false;
        for (Index kind = 0; kind < machines_.kinds().size() && !is_served; ++kind) {
            is_served = machines_.can_run(kind, at);
        }
        demand.is_served = (is_first || demand.is_served) && is_served;
    }
    std::vector<Demand> demands;
    for (auto& [machine, demand] : by_machine) {
        demands.push_back(std::move(demand));
    }
    std::ranges::sort(demands, std::greater(), [](const Demand& demand) {
        return std::tuple(
            demand.waiting.seconds,
            demand.waiting.jobs,
            Requirement().on(demand.machine).encoded()  // so that ties have an order
        );
    });
    return demands;
}

WorkerUse Scheduler::Impl::use_of(const std::string& id, Time now) const {
    WorkerUse use;
    const auto worker = machines_.find(id);
    if (!worker) {
        return use;
    }
    const Machines::Machine& machine = machines_[*worker];
    use.jobs = machine.runs.size();
    use.seconds = machines_.left_s(machine, now);
    for (const Machines::Loaded& loaded : machine.loaded) {
        for (const WaitClass wait_class : kInOrder) {
            use.wanted += order_.waiting(wait_class, loaded.model).jobs;
        }
    }
    return use;
}

}  // namespace comfyd::scheduler
