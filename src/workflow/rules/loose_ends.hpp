// What is wrong with a workflow where ComfyUI does not look: nodes that no output needs, inputs
// that their class does not know, and all of it while no class is known. A worker may stumble over
// it all the same. Only the structure is judged there, no value. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow {

// `told`: what ComfyUI's judgement has found, which is not told again. It may not have come to all
// that an output needs then, so everything is looked at, but for cycles.
std::vector<Issue> find_loose_ends(
    const json::object& workflow, const Catalogue& catalogue, const std::vector<Issue>& told = {}
);

// Why a list in the place of a link leads to no output; empty: it does.
std::string link_problem(
    const json::array& link, const json::object& workflow, const PromptClasses& classes
);

}  // namespace comfyd::workflow
