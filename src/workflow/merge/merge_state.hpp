// What the parts of a merge work on: jobs that share their sampling runs, what each of their nodes
// became, the runs and the prompt so far. Lives as long as one merge. Not thread safe.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/graph/graph.hpp"
#include "workflow/merge/merge.hpp"
#include "workflow/merge/merge_check.hpp"
#include "workflow/merge/merge_prompt.hpp"
#include "workflow/plan/plan.hpp"

namespace comfyd::workflow {

inline constexpr std::size_t kNoBatch = static_cast<std::size_t>(-1);

// What a node of a job became.
struct MergeValue {
    std::string id{};  // in the merged prompt; empty: not made, or made with its sampler
    std::size_t batch = kNoBatch;  // set: it holds the samples of all jobs
    std::size_t count = 0;         // how many samples of this job it holds; 0: not known

    bool operator==(const MergeValue&) const = default;
};

struct MergeJob {
    MergeJob(const MergeInput& input, const PromptClasses& classes)
        : from(input),
          graph(*input.workflow),
          needed(graph.needed_by(find_outputs(graph, classes))),
          values(graph.size()) {}

    MergeInput from;
    Graph graph;
    std::vector<bool> needed;
    std::vector<MergeValue> values;
    std::vector<std::size_t> shapes{};
};

// The samples of one sampling run, job by job.
struct MergeBatch {
    std::vector<std::size_t> counts{};

    std::size_t start_of(std::size_t job) const {
        return std::accumulate(
            counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(job), std::size_t{0}
        );
    }
};

// The same sampler, guider or noise in each of the jobs.
using MergeGroup = std::vector<Graph::Position>;

struct MergeState {
    MergedPrompt& prompt;  // of all jobs, also those that share no sampling run with these
    std::vector<MergeJob> jobs{};
    std::vector<MergeBatch> batches{};

    JobNode origin(std::size_t job, Graph::Position at) const {
        return {jobs[job].from.place.value_or(job), std::string(jobs[job].graph[at].id)};
    }
};

inline constexpr std::string_view kOtherLength =
    "has a text that may be encoded to another length than those of other jobs";

inline json::array merge_link(const std::string& id, int slot) {
    return {id, slot};
}

inline tl::unexpected<Error> refuse_merge(
    const MergeJob& job, Graph::Position at, std::string_view why
) {
    return fail(Code::conflict, describe_node(job.graph, at) + " " + std::string(why));
}

}  // namespace comfyd::workflow
