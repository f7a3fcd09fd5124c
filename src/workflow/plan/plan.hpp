// What running a workflow takes: models, GPU memory, work, time and money, which nodes can run side
// by side and how much of the whole each is. All figures but the models and the keys are estimates
// from a heuristic; where the run times of like workflows are known they take its place. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/catalogue/models.hpp"
#include "workflow/graph/graph.hpp"
#include "workflow/plan/fingerprint.hpp"

namespace comfyd::workflow {

struct Plan;

// A duration that was learned.
struct PastDuration {
    double seconds = 0;
    // "history": of the same workflow on the same type of GPU; "other_gpu": on another type;
    // "similar": of workflows with nearly the same node classes; "heuristic": of the heuristic, by
    // what it was off lately.
    std::string_view basis = "history";
    double confidence = 0;                      // 0..1
    std::optional<std::uint64_t> vram_bytes{};  // at the peak, where such runs taught it
};

struct PlanOptions {
    double seconds_per_unit = 0.05;     // of the GPUs in use
    double gpu_second_usd = 0.0005;     // price of one GPU-second
    double load_mb_per_second = 1'500;  // how fast a model that is not loaded comes into memory
    ModelSizes model_sizes{};
    ModelFiles model_files{};
    InputHashes input_hashes{};
    // What runs of such workflows took, asked when all else of the plan is known; nullopt: not
    // known, then the heuristic counts.
    std::function<std::optional<PastDuration>(const Graph& graph, const Plan& plan)> history{};
};

// One sampling run.
struct SamplingPlan {
    std::string node_id;
    std::int64_t steps = 0;
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::int64_t frames = 1;
    std::int64_t batch_size = 1;
    double work_units = 0;
};

struct Plan {
    std::vector<ModelNeed> models;
    ModelFamily family = ModelFamily::none;
    std::vector<SamplingPlan> sampling;
    std::uint64_t model_bytes = 0;                // of all models
    std::uint64_t vram_bytes = 0;                 // at the peak, estimated
    std::optional<std::uint64_t> vram_learned{};  // the same as runs taught it
    // One unit is one step of an SD 1.5 model over 512x512 pixels.
    double work_units = 0;
    double run_seconds = 0;                         // with all models loaded
    double heuristic_seconds = 0;                   // the same without what was learned
    double load_seconds = 0;                        // for loading all of them
    std::string_view estimate_basis = "heuristic";  // or as in PastDuration
    double confidence = 0;                          // of run_seconds; 0: nothing was learned
    double cost_usd = 0;                            // of run_seconds
    // By position in the workflow, of the nodes that are run; they sum up to 1. For progress.
    std::vector<double> weights;
    // Ids of nodes; those of one stage need only nodes of earlier ones.
    std::vector<std::vector<std::string>> stages;
    std::string batch_key;
    std::string fingerprint;
    std::vector<Digest> node_contents;  // Fingerprints::nodes
    std::vector<bool> needed;           // by position: it is run

    json::object to_json(const Graph& graph) const;
};

// The nodes that are run for their own sake: those whose class says so, or where no class is known
// those that no other node needs.
std::vector<Graph::Position> find_outputs(const Graph& graph, const PromptClasses& classes);

// Of each node, by position, in units; 0 for those that are not run. Plan::weights before they are
// made to sum up to 1, without the rest of a plan.
std::vector<double> node_work(const Graph& graph, const PromptClasses& classes);

Plan make_plan(const Graph& graph, const PromptClasses& classes, const PlanOptions& options = {});

}  // namespace comfyd::workflow
