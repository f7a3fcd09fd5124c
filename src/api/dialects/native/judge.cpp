#include "api/dialects/native/judge.hpp"

#include <utility>

#include "workflow/check.hpp"
#include "workflow/worker_lack.hpp"

namespace comfyd::api::native {
namespace {

// Nothing is known of any class yet: the worker that comes will judge it.
Judgement judge_syntax(
    const workflow::Catalogue& catalogue, const json::object& prompt, std::string_view pool
) {
    Judgement judgement;
    auto checked = workflow::check(prompt, catalogue, pool);
    if (!checked) {
        judgement.verdict.error =
            workflow::make_prompt_error("invalid_prompt", checked.error().message, "");
        return judgement;
    }
    judgement.verdict.accepted = true;
    judgement.requirement = std::move(checked->requirement);
    return judgement;
}

}  // namespace

Judgement refuse_for(
    const std::vector<workflow::Issue>& issues, std::string_view type, std::string_view message
) {
    Judgement judgement;
    judgement.verdict.error = workflow::make_prompt_error(type, message, issues.front().message);
    json::object& nodes = judgement.verdict.node_errors;
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
    return judgement;
}

Judgement judge(
    const workflow::Catalogue& catalogue,
    json::object& prompt,
    const std::vector<std::string>* targets,
    const std::vector<workflow::MissingFile>& missing,
    const workflow::SecurityPolicy& policy,
    std::string_view pool
) {
    const auto issues = workflow::find_security_issues(workflow::Graph(prompt), policy, catalogue);
    if (!issues.empty()) {  // though ComfyUI itself refuses nobody
        return refuse_for(issues, "prompt_not_allowed", "Prompt is not allowed here");
    }
    if (!catalogue.knows_workers()) {
        return judge_syntax(catalogue, prompt, pool);
    }
    const workflow::FileCheckedClasses classes(catalogue, missing);
    workflow::PromptOptions options;
    options.targets = targets;
    options.own_checks_known = false;
    Judgement judgement;
    judgement.verdict = workflow::judge_prompt(prompt, classes, options);
    if (!judgement.verdict.accepted) {
        return judgement;
    }
    judgement.requirement = workflow::with_pool(catalogue.requirement_of(prompt), pool);
    if (const auto lack = workflow::find_lack(catalogue, judgement.requirement)) {
        judgement.verdict.accepted = false;
        judgement.verdict.error = workflow::make_prompt_error(
            "no_capable_worker",
            "No single worker has all that this prompt needs",
            lack->message(),
            lack->details()
        );
    }
    return judgement;
}

}  // namespace comfyd::api::native
