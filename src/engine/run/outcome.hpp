// What the calls of a node gave, put together. Pure; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/run/plan.hpp"

namespace comfyd::engine {

// What a node gave; each slot a list.
struct NodeOutputs {
    std::vector<std::vector<Value>> slots;
    std::optional<json::object> ui;
    Charge charge;  // for what of it does not count itself
};

// The outputs of a node; where it added nodes, with holes that their outputs will fill.
struct Outcome {
    struct Hole {
        std::size_t slot = 0;
        std::size_t position = 0;  // before which of the slot's values
        AddedLink link{};
    };
    NodeOutputs outputs{};
    std::vector<std::pair<std::string, AddedNode>> added{};  // with how its id goes on: ".0.0.1"
    std::vector<Hole> holes{};
};

// Adds what one more call gave.
Result<> add_result(
    const PlannedNode& node,
    const Call& call,
    const Memory& memory,
    NodeResult result,
    std::size_t call_index,
    Outcome& into
);
// The same for a call that was not made, because one of its inputs is a Blocker.
void add_blocked(const PlannedNode& node, Outcome& into);

// The values of an added node's slot.
using AddedReader = std::function<const std::vector<Value>&(const AddedLink& link)>;
// The added nodes have their results: nothing is open any more.
void fill(Outcome& outcome, const AddedReader& read);

}  // namespace comfyd::engine
