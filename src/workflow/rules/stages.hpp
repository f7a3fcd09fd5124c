// Validation in five stages: syntax, semantic, security, resource, optimization. Each gives all of
// its findings, not just the first; a stage that cannot be judged because an earlier one failed
// says so. The semantic stage is ComfyUI's own judgement (judge_prompt) in other words: what
// ComfyUI would accept is never an error there. Pure; any thread; time and size of the answer are
// bounded.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/files/named_files.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/issue.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::workflow {

struct ValidationOptions {
    SecurityPolicy security{};
    PlanOptions plan{};
    std::uint64_t gpu_memory_mb = 0;  // of the largest GPU; 0: not known
    MachineWish machine{};            // only such workers count
    std::vector<MissingFile> missing_files{};
};

struct StageReport {
    Stage stage = Stage::syntax;
    std::string skipped{};  // why it was not judged; empty: it was
    std::vector<Issue> issues{};

    bool valid() const;  // no errors
};

struct Validation {
    std::array<StageReport, 5> stages;
    std::optional<Plan> plan;  // set where the resource stage was judged
    int node_count = 0;

    bool valid() const;
    const StageReport& at(Stage stage) const { return stages[static_cast<std::size_t>(stage)]; }
    StageReport& at(Stage stage) { return stages[static_cast<std::size_t>(stage)]; }
    std::vector<Issue> errors() const;
    // {"valid", "node_count", "errors", "warnings", "stages": [{"stage", "valid", "findings"}]}
    json::object to_json() const;
};

// `workflow` is the API-format map itself (see unwrap()). Where the catalogue knows no worker, node
// classes and values cannot be checked.
Validation validate(
    const json::object& workflow, const Catalogue& catalogue, const ValidationOptions& options = {}
);

// What a worker says about the workflow, as findings of the semantic stage.
std::vector<Issue> issues_of(
    const PromptVerdict& verdict, const json::object& workflow, const Catalogue& catalogue
);

// The stages by themselves, for validate().
struct SyntaxFindings {
    std::vector<Issue> issues;
    bool readable = true;      // the other stages can make sense of it
    bool has_unknown = false;  // some node's class is not known
};
SyntaxFindings find_syntax_issues(const json::object& workflow, const Catalogue& catalogue);
std::vector<Issue> find_semantic_issues(
    const json::object& workflow,
    const Catalogue& catalogue,
    bool has_unknown,
    const std::vector<MissingFile>& missing_files
);
std::vector<Issue> find_resource_issues(
    const json::object& workflow,
    const Plan& plan,
    const Catalogue& catalogue,
    const ValidationOptions& options
);
std::vector<Issue> find_optimizations(const Graph& graph, const Plan& plan);

}  // namespace comfyd::workflow
