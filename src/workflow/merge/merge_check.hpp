// What a workflow may hold to be merged with others, node by node. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workflow/graph/graph.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// The reason why the workflow cannot be merged; nullopt: nothing of its nodes speaks against it.
// `needed`: by position, the nodes that are run.
std::optional<std::string> find_unmergeable(
    const Graph& graph, const std::vector<bool>& needed, const PromptClasses& classes
);

// For messages: "node 9 (SaveImage)".
std::string describe_node(const Graph& graph, Graph::Position at);

}  // namespace comfyd::workflow
