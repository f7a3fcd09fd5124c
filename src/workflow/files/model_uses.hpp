// Where a workflow names model files, and in which of ComfyUI's folders each may lie. Pure; any
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "workflow/catalogue/models.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// Today's name first. Empty: any.
std::span<const std::string_view> model_folders(ModelKind kind);

struct ModelUse {
    std::string node_id;
    std::string class_type;
    std::string input;
    std::string value;
    ModelKind kind = ModelKind::other;
    bool is_offered = false;  // some worker has it
};

// Of inputs that choose among files, in the order of the workflow.
std::vector<ModelUse> find_model_uses(const json::object& workflow, const PromptClasses& classes);

}  // namespace comfyd::workflow
