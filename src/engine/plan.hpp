// The part of a prompt that its outputs need, in an order in which it can run, with the cache key
// of every node. Made once at the start of a run and then only read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/crypto.hpp"
#include "engine/registry.hpp"

namespace comfyd::engine {

struct PlannedLink {
    const Input* input = nullptr;
    std::size_t source = 0;  // index into Plan::nodes, smaller than the linking node's own
    std::size_t slot = 0;
};

struct PlannedNode {
    std::string id;
    const NodeClass* node = nullptr;
    const json::object* inputs = nullptr;
    std::vector<PlannedLink> links;
    std::string fingerprint;  // empty: the class has none
    // Class, fingerprint, literal inputs and the keys of all sources. Node ids do not matter, as in
    // ComfyUI.
    Digest key{};
    bool output = false;  // one of the prompt's outputs to execute
};

struct Plan {
    std::vector<PlannedNode> nodes;  // sources first
};

// REQUIRES: validate_prompt() accepted `prompt` and named `outputs`. The plan points into both
// arguments.
Plan make_plan(
    const json::object& prompt,
    const std::vector<std::string>& outputs,
    const Registry& registry,
    const Folders& folders
);

}  // namespace comfyd::engine
