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

std::vector<Backlog> Scheduler::Impl::backlog() const {
    std::vector<Backlog> backlog;
    for (const auto& [key, waiting] : order_.waiting_by_kind()) {
        const auto& [requirement, wait_class, anchor] = key;
        Backlog& kind = backlog.emplace_back();
        kind.machine = profiles_.requirement(requirement).machine();
        kind.wait_class = wait_class;
        if (anchor != 0) {
            kind.model = profiles_.model(anchor).name;
            kind.load_s = profiles_.load_s(anchor, profiles_.usual_type(), {});
        }
        kind.waiting = waiting;
        for (Index at = 0; at < machines_.kinds().size() && !kind.is_served; ++at) {
            kind.is_served = machines_.can_run(at, requirement);
        }
    }
    return backlog;
}

std::map<std::string, double> Scheduler::Impl::arrived_s() {
    std::map<std::string, double> by_pool;
    const std::vector<double>& arrived = order_.arrived_s();
    for (Index at = 0; at < arrived.size(); ++at) {
        by_pool[profiles_.requirement(at).machine().pool] += arrived[at];
    }
    return by_pool;
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
    for (const Machines::Run& run : machine.runs) {
        const auto job = running_.find(run.job);
        const bool is_known = job != running_.end();
        use.best_effort += is_known && job->second.owner.wait_class == WaitClass::batch ? 1 : 0;
    }
    for (const Machines::Loaded& loaded : machine.loaded) {
        for (const WaitClass wait_class : kInOrder) {
            use.wanted += order_.in_turn(wait_class, loaded.model).jobs;
        }
    }
    return use;
}

}  // namespace comfyd::scheduler
