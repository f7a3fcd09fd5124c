// The executor's account of a run: one node after the other has its turn, in ComfyUI's order, and
// is told of then, whenever it ran. All of it under turn_mutex_.
#include <algorithm>
#include <utility>

#include "engine/run/executor.hpp"

namespace comfyd::engine {
namespace {

// Steps of a node that is ahead of its turn; further ones are not told.
constexpr std::size_t kUntoldMax = 1'000;

// Adds where it happened, in the form of ComfyUI's execution_error message: for an added node the
// one of the prompt that it belongs to.
Error at_node(Error error, const Plan& plan, std::size_t index) {
    while (plan.nodes[index].parent) {
        index = *plan.nodes[index].parent;
    }
    const PlannedNode& node = plan.nodes[index];
    const std::string& name = node.type->node.name;
    const bool own = error.code == Code::node_execution_error;
    json::object details;
    details["node_id"] = node.id;
    details["node_type"] = name;
    if (own) {
        const json::value* type = json::find(error.details, "exception_type");
        details["exception_type"] = type != nullptr ? *type : json::value("RuntimeError");
        details["exception_message"] = error.message + "\n";
        details["traceback"] = json::array();
        if (const json::value* inputs = json::find(error.details, "current_inputs")) {
            details["current_inputs"] = *inputs;
        }
        error.message = name + " (node " + node.id + "): " + error.message;
    }
    error.details = std::move(details);
    return error;
}

}  // namespace

std::vector<std::size_t> Executor::advance() {
    std::vector<std::size_t> to_launch;
    while (!failure_) {
        const auto node = schedule_->next();
        if (!node || take_turn(*node, to_launch) == Turn::waiting) {
            break;
        }
    }
    return failure_ ? std::vector<std::size_t>() : to_launch;
}

Executor::Turn Executor::take_turn(std::size_t node, std::vector<std::size_t>& to_launch) {
    const std::size_t index = unit_of_[node];
    Unit& unit = units_[index];
    if (schedule_->is_settled(index)) {
        tell_cached(node);
        return Turn::over;
    }
    if (unit.teller && *unit.teller != node) {
        schedule_->wait_for(node, *unit.teller);
        return Turn::over;
    }
    if (!unit.teller) {
        if (stop_.stop_requested()) {
            fail_run(Error(Code::cancelled, "The run was cancelled."));
            return Turn::over;
        }
        parts_.listener.executing(plan_.nodes[node].id);
        if (asks_first(unit) && !ask(node, to_launch)) {
            return Turn::over;
        }
        retry_if_memory_was_short(index, to_launch);
        unit.teller = node;
        for (const Event& event : std::exchange(unit.untold, {})) {
            event(parts_.listener, plan_.nodes[node].id);
        }
        if (plan_.nodes[node].type->node.is_async) {
            launch(index, to_launch);
            schedule_->set_aside(node);
            return Turn::over;
        }
    }
    return tell_result(node, to_launch);
}

void Executor::launch(std::size_t index, std::vector<std::size_t>& to_launch) {
    const Lock lock(mutex_);
    if (units_[index].state == State::waiting) {
        units_[index].state = State::launched;
        to_launch.push_back(index);
    }
}

// The node has its turn and has been told of as executing; its unit may have run long ago, or have
// to run still.
Executor::Turn Executor::tell_result(std::size_t node, std::vector<std::size_t>& to_launch) {
    const std::size_t index = unit_of_[node];
    Unit& unit = units_[index];
    std::optional<json::object> ui;
    launch(index, to_launch);
    {
        const Lock lock(mutex_);
        if (unit.state == State::launched) {
            return Turn::waiting;
        }
        if (unit.state == State::done && !unit.failure) {
            ui = unit.ui;
        }
    }
    if (unit.open) {
        return expand(node, to_launch);
    }
    const PlannedNode& planned = plan_.nodes[node];
    if (unit.failure) {
        fail_run(std::move(*unit.failure), node);
        return Turn::over;
    }
    if (ui) {
        parts_.listener.executed(planned.id, *ui);
        outputs_[planned.id] = std::move(*ui);
    }
    parts_.listener.finished(planned.id);
    schedule_->settle(index);
    schedule_->remove(node);
    return Turn::over;
}

// Ahead of its turn a node competes for memory with nodes that come before it.
void Executor::retry_if_memory_was_short(std::size_t index, std::vector<std::size_t>& to_launch) {
    const Lock lock(mutex_);
    Unit& unit = units_[index];
    if (unit.failure && unit.failure->code == Code::out_of_memory) {
        unit.failure.reset();
        unit.untold.clear();
        unit.state = State::launched;
        to_launch.push_back(index);
    }
}

void Executor::tell_cached(std::size_t node) {
    const PlannedNode& planned = plan_.nodes[node];
    const std::optional<json::object>& ui = units_[unit_of_[node]].ui;
    parts_.listener.executed(planned.id, ui.value_or(json::object()));
    if (ui) {
        outputs_[planned.id] = *ui;
    }
    schedule_->remove(node);
}

// True when the node has all that it needs. Otherwise it waits for what it asked for, or the run
// has failed.
bool Executor::ask(std::size_t node, std::vector<std::size_t>& to_launch) {
    const auto missing = missing_sources(node);
    if (!missing) {
        fail_run(missing.error(), node);
        return false;
    }
    for (const std::size_t source : *missing) {
        join(schedule_->require(node, source), to_launch);
    }
    return missing->empty();
}

Result<std::vector<std::size_t>> Executor::missing_sources(std::size_t node) {
    const PlannedNode& planned = plan_.nodes[node];
    Unit& unit = units_[unit_of_[node]];
    // What has been settled stays as it is until this unit has run.
    auto inputs = bind(planned, [this](const PlannedLink& link) COMFYD_REQUIRES(turn_mutex_) {
        const std::size_t source = unit_of_[link.source];
        return schedule_->is_settled(source) ? &units_[source].result->slots[link.slot] : nullptr;
    });
    if (!inputs) {
        return fail(std::move(inputs.error()));
    }
    const auto names = ask_needed(planned, *inputs, surroundings_);
    if (!names) {
        return fail(names.error());
    }
    std::vector<std::size_t> missing;
    for (const PlannedInput& input : planned.inputs) {
        const bool wanted = std::ranges::find(*names, input.input->name) != names->end();
        if (wanted && input.is_linked() && !schedule_->is_settled(source_unit(input))) {
            missing.push_back(input.link.source);
        }
    }
    unit.asked = std::move(*inputs);
    return missing;
}

void Executor::tell(std::size_t index, Kind kind, Event event) {
    const Lock turn(turn_mutex_);
    Unit& unit = units_[index];
    if (unit.teller) {
        event(parts_.listener, plan_.nodes[*unit.teller].id);
        return;
    }
    if (kind == Kind::content || unit.untold.size() < kUntoldMax) {
        unit.untold.push_back(std::move(event));
    }
}

void Executor::fail_run(Error error, std::size_t node) {
    fail_run(at_node(std::move(error), plan_, node));
}

void Executor::fail_run(Error error) {
    failure_ = std::move(error);
    failed_.store(true, std::memory_order_relaxed);
}

}  // namespace comfyd::engine
