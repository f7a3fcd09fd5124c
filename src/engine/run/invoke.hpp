// Calls a node as ComfyUI does: every slot holds a list of values, an ordinary class is called once
// for each element, and what the calls give is put together again. Stateless; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/run/outcome.hpp"

namespace comfyd::engine {

// An input with the list of its values.
struct BoundInput {
    const workflow::InputDefinition* input = nullptr;
    std::vector<Value> values;
};

// The values of a linked slot; nullptr: they are not there, because a lazy input was not needed.
using SlotReader = std::function<const std::vector<Value>*(const PlannedLink& link)>;

// Literals and linked values by input. TypeError where one is of another kind than the class takes.
Result<std::vector<BoundInput>> bind(const PlannedNode& node, const SlotReader& read);

Result<Outcome> invoke(
    const PlannedNode& node, const std::vector<BoundInput>& inputs, const Surroundings& surroundings
);
// The lazy inputs that the class asks for, given those it has.
Result<std::vector<std::string>> ask_needed(
    const PlannedNode& node, const std::vector<BoundInput>& inputs, const Surroundings& surroundings
);

}  // namespace comfyd::engine
