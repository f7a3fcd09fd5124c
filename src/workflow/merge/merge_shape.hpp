// What the nodes of several workflows have in common: nodes with the same number differ at most in
// values that may differ within a batch, and so do all nodes that they need. The numbers hold for
// the workflows that one Shapes has seen. Not thread safe.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "workflow/graph/graph.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

class Shapes {
public:
    explicit Shapes(const PromptClasses& classes) : classes_(classes) {}

    // By position. The graph has no cycle.
    std::vector<std::size_t> of(const Graph& graph);

private:
    const PromptClasses& classes_;
    std::unordered_map<std::string, std::size_t> numbers_;
};

// The text of a literal: the same for 7 and 7.0.
std::string literal_text(const json::value& value);

}  // namespace comfyd::workflow
