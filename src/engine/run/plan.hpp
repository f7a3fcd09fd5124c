// A prompt made ready to run: its nodes with their links resolved and their cache keys. Made once
// at the start of a run; nodes that others add while they run come after those of the prompt.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/crypto.hpp"
#include "engine/nodes/registry.hpp"
#include "engine/values/owner.hpp"

namespace comfyd::engine {

struct PlannedLink {
    std::size_t source = 0;  // index into Plan::nodes, smaller than the linking node's own
    std::size_t slot = 0;
};

// What the prompt gives for one input of the class.
struct PlannedInput {
    const workflow::InputDefinition* input = nullptr;
    const json::value* literal = nullptr;
    const Value* value = nullptr;  // of a node that another one added
    PlannedLink link{};            // where there is neither

    bool is_linked() const { return literal == nullptr && value == nullptr; }
};

struct PlannedNode {
    std::string id;
    std::size_t position = 0;  // in the prompt
    const RegisteredClass* type = nullptr;
    std::vector<PlannedInput> inputs;  // in declaration order
    std::vector<std::size_t> links;    // those of `inputs` that are linked, in the prompt's order
    std::string fingerprint;           // empty: the class has none
    std::optional<std::size_t> parent{};  // the node that added it
    std::size_t depth = 0;                // how many have added one another
    // Owner, class, fingerprint, literal inputs and the keys of all sources. Node ids do not
    // matter, as in ComfyUI, except to classes that are told theirs.
    Digest key{};
};

struct Plan {
    // Sources first. All nodes of the prompt that could run, also those that no output needs: what
    // is cached of them stays.
    std::deque<PlannedNode> nodes;
    std::vector<std::size_t> outputs;               // those to execute
    std::deque<workflow::InputDefinition> unnamed;  // of classes that take any input
    std::deque<Value> values;                       // of added nodes
};

// For a prompt that validation accepted, and the outputs that it named. The plan points into both
// `prompt` and `registry`. nullopt: one of the outputs cannot run.
std::optional<Plan> make_plan(
    const json::object& prompt,
    const std::vector<std::string>& outputs,
    const Registry& registry,
    const Owner& owner
);

// How many nodes one run may add, and how deep.
inline constexpr std::size_t kAddedNodesMax = 10'000;
inline constexpr std::size_t kAddedDepthMax = 1'000;

// A node that the node `parent` adds; in its links a place is that in `nodes`, counted from
// `first`. What is there already stays where it is.
Result<> add_node(
    Plan& plan,
    std::size_t parent,
    std::string id,
    AddedNode node,
    std::size_t first,
    const Registry& registry
);

// ComfyUI's test for a link: [node id, slot].
bool is_link(const json::value& value);

}  // namespace comfyd::engine
