// Several jobs with the same batch key rewritten into one prompt: shared loaders, one text encode
// for each text, conditionings joined along the batch axis, one noise seed for each job, one
// sampling run, one decode, and the pictures of each job saved by nodes of its own with its own
// prompt and workflow inside. Jobs whose texts are encoded to another length have a sampling run of
// their own in it. The worker needs the node pack in worker/comfyui_nodes/comfyd. Pure; any
// thread; no recursion along links.
//
// Guarantees: what comes out is the same for the same jobs; no job sees a text, seed or file of
// another; what is not known to give each job the pictures of its own run is refused, never tried.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/prompt_rules.hpp"

namespace comfyd::workflow {

// A worker without this class does not merge.
inline constexpr std::string_view kMergeNode = "ComfydLatentBatch";
inline constexpr std::size_t kMergeJobsMax = 64;
inline constexpr std::size_t kMergeSamplesMax = 4'096;

struct MergeInput {
    const json::object* workflow = nullptr;       // as the job alone would send it
    const json::object* extra_pnginfo = nullptr;  // written into its pictures; nullptr: nothing
    std::optional<std::size_t> place{};           // as JobNode::job names it; else its index here
};

struct JobNode {
    std::size_t job;  // its place
    std::string node_id;

    auto operator<=>(const JobNode&) const = default;
};

struct Merged {
    json::object prompt;
    // For each node of the prompt those whose work it does: events and outputs of it are theirs.
    // Empty for the nodes that join and split.
    std::map<std::string, std::vector<JobNode>, std::less<>> origins;
    std::vector<std::size_t> samples;  // how many the first sampling run makes for each job
};

// The ids of nodes that belong to one job alone, such as those that save, tell whose they are:
// their results can be given to the right job even where nothing else is left of the merge.
std::string own_node_id(const JobNode& node);
std::optional<JobNode> own_node(std::string_view id);  // nullopt: not such an id

// Code::conflict with the reason where the jobs cannot share one prompt; they run alone then.
Result<Merged> merge(const std::vector<MergeInput>& jobs, const PromptClasses& classes);

// The reason why jobs of this form never share a prompt; nullopt: two of them with the same batch
// key may. The same for all jobs with the same batch key.
std::optional<std::string> why_not_mergeable(
    const json::object& workflow, const PromptClasses& classes
);

// The worker has the node pack and the classes of ComfyUI that a merged prompt is made with.
bool worker_supports_merge(const NodeClasses& worker);

}  // namespace comfyd::workflow
