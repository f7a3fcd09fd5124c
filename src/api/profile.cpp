#include "api/profile.hpp"

#include <algorithm>

#include "workflow/merge.hpp"
#include "workflow/models.hpp"

namespace comfyd::api {
namespace {

bool names_models(const json::object& workflow) {
    return std::ranges::any_of(workflow, [](const auto& node) {
        const json::object* members = node.value().if_object();
        const json::value* inputs = members == nullptr ? nullptr : json::find(*members, "inputs");
        return inputs != nullptr && inputs->is_object() &&
               std::ranges::any_of(inputs->get_object(), [](const auto& input) {
                   return input.value().is_string() && workflow::is_model_input(input.key());
               });
    });
}

}  // namespace

scheduler::ProfilePtr make_profile(
    const json::object& workflow,
    const workflow::PromptClasses& classes,
    const workflow::PlanOptions& options,
    const jobs::Spec& spec
) {
    if (!names_models(workflow)) {
        return nullptr;
    }
    const workflow::Plan plan = workflow::make_plan(workflow::Graph(workflow), classes, options);
    auto profile = std::make_shared<scheduler::Profile>();
    profile->requirement = spec.requirement;
    for (const workflow::ModelNeed& model : plan.models) {
        profile->models.push_back(
            {std::string(to_string(model.kind)) + "/" + model.name, model.estimated_bytes}
        );
    }
    std::ranges::sort(profile->models, {}, &scheduler::Model::name);
    profile->shape = plan.batch_key;
    profile->work_units = plan.work_units;
    profile->heuristic_seconds = plan.heuristic_seconds;
    profile->vram_bytes = plan.vram_bytes;
    // One prompt has one set of credentials and of targets. The rest is asked only where some
    // worker can merge.
    profile->can_be_merged = spec.secret_extra_data.empty() && spec.targets.empty() &&
                             classes.find(workflow::kMergeNode) != nullptr &&
                             !workflow::why_not_mergeable(workflow, classes);
    return profile;
}

}  // namespace comfyd::api
