// Whether a workflow may run and can, by the rules of its manner. Pure; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admission/submission.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::admission {

// What the operator's rules are against.
Decision<void> judge_security(
    const json::object& graph,
    const workflow::SecurityPolicy& policy,
    const workflow::Catalogue& catalogue
);

// Each must be good, and then the verdict says nothing more than good_verdict().
bool judges_every_node(Manner manner, const workflow::Catalogue& catalogue);
workflow::PromptVerdict good_verdict(const Submission& submission);

// `missing`: files that neither the tenant nor a worker has. By Manner::comfyui the literals of the
// graph are coerced in place. The verdict is accepted; that of Manner::strict says nothing more.
Decision<workflow::PromptVerdict> judge_nodes(
    json::object& graph,
    const workflow::Catalogue& catalogue,
    const Submission& submission,
    const std::vector<workflow::MissingFile>& missing
);

// What a worker says counts for more: it knows all that we know and the checks of its classes.
Decision<void> take_verdict(
    workflow::PromptVerdict heard,
    Manner manner,
    const json::object& graph,
    const workflow::Catalogue& catalogue,
    workflow::PromptVerdict& verdict
);

// What the graph needs of a worker, as in jobs::Spec.
Decision<Requirement> judge_need(
    const json::object& graph, const workflow::Catalogue& catalogue, const MachineWish& machine
);

// `issues` holds at least one.
tl::unexpected<Refusal> refuse(Refusal::Why why, Error error, std::vector<workflow::Issue> issues);
tl::unexpected<Refusal> refuse(Error error);

}  // namespace comfyd::admission
