// The part of a workflow that brings models into memory, as a prompt of its own: its loaders, what
// changes models without sampling (LoRAs, patches), and a node of the node pack comfyd that takes
// what the rest of the workflow takes of them. ComfyUI keeps the results of its latest prompt, so a
// prompt with the same loaders that follows finds the models there. Pure; any thread.
#pragma once

#include <string_view>

#include "base/json.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// The class of the node pack, and how many inputs it has at most: loaded0, loaded1, …
inline constexpr std::string_view kWarmClass = "ComfydWarm";
inline constexpr int kWarmInputsMax = 32;

// Without members: the workflow has no loaders that are known here.
json::object loaders_of(const json::object& workflow, const PromptClasses& classes);

}  // namespace comfyd::workflow
