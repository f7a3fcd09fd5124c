// Nodes that a node adds to the run while it executes, as ComfyUI's "expand". They are a graph of
// their own: what they need of the prompt they are given as values. Immutable once it is returned.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/values/value.hpp"

namespace comfyd::engine {

// An output of an added node, by its place among them.
struct AddedLink {
    std::size_t node = 0;
    std::size_t slot = 0;
};
using AddedInput = std::variant<Value, AddedLink>;

struct AddedNode {
    std::string class_type{};
    std::vector<std::pair<std::string, AddedInput>> inputs{};
};

struct Expansion {
    std::vector<AddedNode> nodes{};     // sources first: a link names an earlier one
    std::vector<AddedInput> outputs{};  // of the node that adds them, one for each declared output

    // Not inline: every node class can give one, few do.
    Expansion();
    Expansion(const Expansion& other);
    Expansion(Expansion&& other) noexcept;
    Expansion& operator=(const Expansion& other);
    Expansion& operator=(Expansion&& other) noexcept;
    ~Expansion();

    // The place of the new node.
    std::size_t add(AddedNode node);
};

}  // namespace comfyd::engine
