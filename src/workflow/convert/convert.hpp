// Turns a workflow in the editor's save format ({"nodes": [...], "links": [...]}) into the API
// format that workers run, as ComfyUI's editor itself does when a person presses "Run": widget
// values by position, reroutes, muted and bypassed nodes, primitive nodes, and subgraphs unfolded
// into nodes with ids such as "4:7". Pure; any thread.
//
// Guarantees: never recurses along the document; at most kNodesMax nodes with subgraphs unfolded;
// whole numbers stay exact where the editor would round them to a double.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

struct ConvertOptions {
    // Decides for texts with choices, "a {red|blue} car". Not set: the first one, so that the same
    // workflow always gives the same prompt.
    std::function<std::size_t(std::size_t count)> choose{};
    // For "%date:yyyy%" in names of files. nullopt: stays as it is.
    std::optional<Time> now{};
};

// Code::invalid_workflow with details as check() gives them: nodes of unknown classes, links that
// lead nowhere, subgraphs that contain themselves, too large.
Result<json::object> convert_ui(
    const json::object& workflow, const PromptClasses& classes, const ConvertOptions& options = {}
);

}  // namespace comfyd::workflow
