// Nodes that a node adds to the run: they get units of their own and join the schedule, and the
// node that added them has its result when they have theirs. All of it under turn_mutex_.
#include <utility>

#include "engine/run/executor.hpp"

namespace comfyd::engine {

// The turn of a node that has run and added others: its first turn since then, or the one in which
// it has what it waited for.
Executor::Turn Executor::expand(std::size_t node, std::vector<std::size_t>& to_launch) {
    const std::size_t index = unit_of_[node];
    Unit& unit = units_[index];
    if (unit.first_added) {
        for (const std::size_t ready : resolve(index)) {
            to_launch.push_back(ready);
        }
        return Turn::over;
    }
    const std::size_t first = plan_.nodes.size();
    if (auto added = add_nodes(node); !added) {
        fail_run(std::move(added.error()), node);
        return Turn::over;
    }
    for (std::size_t i = first; i < plan_.nodes.size(); ++i) {
        parts_.listener.added(plan_.nodes[i].id, plan_.nodes[node].id);
    }
    schedule_->take_back(node);
    for (std::size_t i = first; i < plan_.nodes.size(); ++i) {
        if (plan_.nodes[i].type->definition->output_node()) {
            join(schedule_->add(i), to_launch);
        }
    }
    for (const Outcome::Hole& hole : unit.open->holes) {
        join(schedule_->require(node, first + hole.link.node), to_launch);
    }
    return Turn::over;
}

Result<> Executor::add_nodes(std::size_t node) {
    const Lock lock(mutex_);
    Unit& unit = units_[unit_of_[node]];
    const std::size_t first = plan_.nodes.size();
    if (first - planned_ + unit.open->added.size() > kAddedNodesMax) {
        return node_error(
            "RuntimeError", "a run may add " + std::to_string(kAddedNodesMax) + " nodes at most"
        );
    }
    for (auto& [suffix, added] : unit.open->added) {
        auto done = add_node(
            plan_, node, plan_.nodes[node].id + suffix, std::move(added), first, parts_.registry
        );
        if (!done) {
            return done;
        }
    }
    for (const Outcome::Hole& hole : unit.open->holes) {
        if (hole.link.node >= plan_.nodes.size() - first ||
            hole.link.slot >=
                plan_.nodes[first + hole.link.node].type->definition->outputs().size()) {
            return node_error("IndexError", "an output is linked to a node that is not there");
        }
    }
    unit.first_added = first;
    add_units(first, *unit.open);
    return {};
}

// Under both mutexes.
void Executor::add_units(std::size_t first_node, const Outcome& open) {
    for (std::size_t i = first_node; i < plan_.nodes.size(); ++i) {
        unit_of_.push_back(units_.size());
        Unit& unit = units_.emplace_back();
        unit.first = i;
        unit.counted = true;
        for (const PlannedInput& input : plan_.nodes[i].inputs) {
            if (input.is_linked()) {
                ++units_[source_unit(input)].readers;
            }
        }
    }
    for (const Outcome::Hole& hole : open.holes) {
        ++units_[unit_of_[first_node + hole.link.node]].readers;
    }
    schedule_->grow();
}

// Makes the result of a node from those of the nodes that it added; the units that may run now.
std::vector<std::size_t> Executor::resolve(std::size_t index) {
    std::vector<SharedResult> released;  // freed after the lock
    Outcome outcome;
    {
        const Lock lock(mutex_);
        Unit& unit = units_[index];
        outcome = std::move(*unit.open);
        unit.open.reset();
        std::vector<std::size_t> sources;
        for (const Outcome::Hole& hole : outcome.holes) {
            sources.push_back(unit_of_[*unit.first_added + hole.link.node]);
        }
        fill(outcome, [&](const AddedLink& link) -> const std::vector<Value>& {
            return units_[unit_of_[*unit.first_added + link.node]].result->slots[link.slot];
        });
        for (const std::size_t source : sources) {
            if (--units_[source].readers == 0) {
                released.push_back(std::move(units_[source].result));
            }
        }
    }
    return complete(index, std::move(outcome));
}

}  // namespace comfyd::engine
