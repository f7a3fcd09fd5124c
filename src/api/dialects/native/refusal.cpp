#include "api/dialects/native/refusal.hpp"

#include <utility>

namespace comfyd::api::native {
namespace {

using Why = admission::Refusal::Why;

json::object headline(const admission::Refusal& refusal) {
    const auto make = [&refusal](std::string_view type, std::string_view message) {
        const std::string details =
            refusal.issues.empty() ? std::string() : refusal.issues.front().message;
        return workflow::make_prompt_error(type, message, details);
    };
    switch (refusal.why) {
        case Why::not_allowed:  // though ComfyUI itself refuses nobody
            return make("prompt_not_allowed", "Prompt is not allowed here");
        case Why::unavailable:
            return make("prompt_inputs_not_available", "Files of the prompt cannot be had");
        case Why::no_worker:
            return workflow::make_prompt_error(
                "no_capable_worker",
                "No single worker has all that this prompt needs",
                refusal.lack->message(),
                refusal.lack->details()
            );
        case Why::invalid:
            if (!refusal.issues.empty()) {
                return make("prompt_outputs_failed_validation", "Prompt outputs failed validation");
            }
            break;
        case Why::failed:
            break;
    }
    return workflow::make_prompt_error("invalid_prompt", refusal.error.message, "");
}

json::object encode_nodes(const std::vector<workflow::Issue>& issues) {
    json::object nodes;
    for (const workflow::Issue& issue : issues) {
        if (issue.node_id.empty()) {
            continue;
        }
        json::value& about = nodes[issue.node_id];
        if (!about.is_object()) {
            about = json::object{
                {"errors", json::array()},
                {"dependent_outputs", json::array()},
                {"class_type", issue.class_type}
            };
        }
        about.at("errors").as_array().emplace_back(workflow::make_prompt_error(
            issue.reason.empty() ? issue.code : issue.reason,
            issue.message,
            issue.input,
            {{"input_name", issue.input}}
        ));
    }
    return nodes;
}

}  // namespace

PromptRefusal encode_refusal(admission::Refusal refusal) {
    if (!refusal.prompt_error.empty()) {
        return {std::move(refusal.prompt_error), std::move(refusal.node_errors)};
    }
    return {headline(refusal), encode_nodes(refusal.issues)};
}

}  // namespace comfyd::api::native
