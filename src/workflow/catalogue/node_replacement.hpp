// Newer ComfyUI servers give old node classes their new names before they look at a prompt; which
// ones is told by GET /node_replacements. Pure; any thread.
#pragma once

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// `replacements` is such a document; nodes whose class exists are left alone, and so are those for
// which no class that exists is offered. Where a server would drop every input, because it is not
// told what becomes of them, they stay.
void apply_replacements(
    json::object& prompt, const json::object& replacements, const PromptClasses& classes
);

// Adds what `more` has and `into` has not.
void join_replacements(json::object& into, const json::object& more);

}  // namespace comfyd::workflow
