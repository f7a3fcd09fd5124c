#include "admission/judge.hpp"

#include <algorithm>
#include <utility>

#include "workflow/rules/check.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::admission {
namespace {

using Why = Refusal::Why;

std::string text_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

// ComfyUI's own refusal.
tl::unexpected<Refusal> refuse(workflow::PromptVerdict verdict) {
    std::string message = text_of(verdict.error, "message");
    if (const std::string details = text_of(verdict.error, "details"); !details.empty()) {
        message += ": " + details;
    }
    Refusal refusal;
    refusal.error = Error(Code::invalid_workflow, std::move(message));
    refusal.why = Why::invalid;
    refusal.prompt_error = std::move(verdict.error);
    refusal.node_errors = std::move(verdict.node_errors);
    return tl::unexpected(std::move(refusal));
}

std::optional<Refusal> check_every_node(
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    Manner manner,
    const std::vector<workflow::MissingFile>& missing
) {
    Refusal refusal;
    refusal.why = Why::invalid;
    if (workflow::is_ui_format(graph)) {
        refusal.error = workflow::ui_format_error();
    } else {
        refusal.issues = workflow::find_faults(graph, catalogue, missing);
        if (refusal.issues.empty()) {
            return std::nullopt;
        }
        refusal.error = workflow::issues_error(refusal.issues);
    }
    if (manner == Manner::comfyui) {
        refusal.prompt_error =
            workflow::make_prompt_error("invalid_prompt", refusal.error.message, "");
    }
    return refusal;
}

}  // namespace

tl::unexpected<Refusal> refuse(Why why, Error error, std::vector<workflow::Issue> issues) {
    Refusal refusal;
    refusal.error = std::move(error);
    refusal.why = why;
    refusal.issues = std::move(issues);
    return tl::unexpected(std::move(refusal));
}

tl::unexpected<Refusal> refuse(Error error) {
    return refuse(Why::failed, std::move(error), {});
}

Decision<void> judge_security(
    const json::object& graph,
    const workflow::SecurityPolicy& policy,
    const workflow::Catalogue& catalogue
) {
    auto issues = workflow::find_security_issues(workflow::Graph(graph), policy, catalogue);
    if (!issues.empty()) {
        Error error = workflow::issues_error(issues);
        return refuse(Why::not_allowed, std::move(error), std::move(issues));
    }
    return {};
}

bool judges_every_node(Manner manner, const workflow::Catalogue& catalogue) {
    // Where nothing is known of any class, the worker that comes will judge it.
    return manner == Manner::strict || !catalogue.knows_workers();
}

workflow::PromptVerdict good_verdict(const Submission& submission) {
    workflow::PromptVerdict verdict;
    verdict.accepted = true;
    verdict.outputs_to_execute = submission.targets.value_or(std::vector<std::string>());
    return verdict;
}

Decision<workflow::PromptVerdict> judge_nodes(
    json::object& graph,
    const workflow::Catalogue& catalogue,
    const Submission& submission,
    const std::vector<workflow::MissingFile>& missing
) {
    if (judges_every_node(submission.manner, catalogue)) {
        if (auto refused = check_every_node(graph, catalogue, submission.manner, missing)) {
            return tl::unexpected(std::move(*refused));
        }
        return good_verdict(submission);
    }
    const workflow::FileCheckedClasses classes(catalogue, missing);
    workflow::PromptOptions options;
    options.targets = submission.targets ? &*submission.targets : nullptr;
    options.own_checks_known = false;
    auto verdict = workflow::judge_prompt(graph, classes, options);
    if (!verdict.accepted) {
        return refuse(std::move(verdict));
    }
    return verdict;
}

Decision<void> take_verdict(
    workflow::PromptVerdict heard,
    Manner manner,
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    workflow::PromptVerdict& verdict
) {
    if (manner == Manner::strict) {
        auto issues = workflow::issues_of(heard, graph, catalogue);
        if (issues.empty()) {
            return {};
        }
        Error error = workflow::issues_error(issues);
        return refuse(Why::invalid, std::move(error), std::move(issues));
    }
    if (!heard.accepted) {
        return refuse(std::move(heard));
    }
    verdict.node_errors = std::move(heard.node_errors);
    std::erase_if(verdict.outputs_to_execute, [&](const std::string& output) {
        return std::ranges::count(heard.outputs_to_execute, output) == 0;
    });
    return {};
}

Decision<Requirement> judge_need(
    const json::object& graph, const workflow::Catalogue& catalogue, const MachineWish& machine
) {
    auto requirement = workflow::find_requirement(graph, catalogue, machine);
    if (!requirement) {
        Refusal refusal;
        refusal.error = requirement.error().to_error();
        refusal.why = Why::no_worker;
        refusal.lack = std::move(requirement.error());
        return tl::unexpected(std::move(refusal));
    }
    return std::move(*requirement);
}

}  // namespace comfyd::admission
