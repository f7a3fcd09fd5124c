#include "workflow/rules/check.hpp"

#include <algorithm>
#include <utility>

#include "workflow/rules/loose_ends.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::workflow {

bool is_ui_format(const json::object& workflow) {
    const json::value* nodes = json::find(workflow, "nodes");
    return nodes != nullptr && nodes->is_array();
}

const json::object& unwrap(const json::object& workflow) {
    for (const char* wrapper : {"prompt", "workflow", "output"}) {
        const json::value* inner = json::find(workflow, wrapper);
        if (inner != nullptr && inner->is_object() && !inner->get_object().contains("class_type")) {
            return inner->get_object();
        }
    }
    return workflow;
}

Error ui_format_error() {
    return Error(
        Code::workflow_format_ui,
        "this is the editor's save format, which cannot be executed as it is; "
        "export it with \"Export (API)\" and send that"
    );
}

std::vector<Issue> find_faults(
    const json::object& workflow,
    const Catalogue& catalogue,
    const std::vector<MissingFile>& missing
) {
    SyntaxFindings syntax = find_syntax_issues(workflow, catalogue);
    std::vector<Issue> faults = std::move(syntax.issues);
    const auto append = [&faults](std::vector<Issue> more) {
        std::ranges::move(more, std::back_inserter(faults));
    };
    if (syntax.readable) {
        append(find_semantic_issues(workflow, catalogue, syntax.has_unknown, missing));
        if (catalogue.knows_workers()) {
            append(find_loose_ends(workflow, catalogue, faults));
        }
    }
    if (faults.size() > kIssuesMax) {
        faults.resize(kIssuesMax);
    }
    for (Issue& fault : faults) {
        fault.severity = Severity::error;  // also where another output could run
    }
    return faults;
}

tl::expected<Requirement, WorkerLack> find_requirement(
    const json::object& workflow, const Catalogue& catalogue, const MachineWish& machine
) {
    Requirement requirement = catalogue.requirement_of(workflow).on(machine);
    if (auto lack = find_lack(catalogue, requirement)) {
        return tl::unexpected(std::move(*lack));
    }
    return requirement;
}

Result<Checked> check(
    const json::object& workflow,
    const Catalogue& catalogue,
    const MachineWish& machine,
    const std::vector<MissingFile>& missing
) {
    if (is_ui_format(workflow)) {
        return fail(ui_format_error());
    }
    if (const auto faults = find_faults(workflow, catalogue, missing); !faults.empty()) {
        return fail(issues_error(faults));
    }
    auto requirement = find_requirement(workflow, catalogue, machine);
    if (!requirement) {
        return fail(requirement.error().to_error());
    }
    return Checked{std::move(*requirement), static_cast<int>(workflow.size())};
}

}  // namespace comfyd::workflow
