// The resource and the optimization stage: whether someone can run it, and how it could run better.
#include <algorithm>
#include <map>
#include <utility>

#include "workflow/catalogue/worker_lack.hpp"
#include "workflow/rules/stages.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

constexpr std::size_t kAdviceMax = 100;
constexpr std::int64_t kManySteps = 60;

Issue about(
    const Graph& graph, Position at, Stage stage, std::string_view code, std::string message
) {
    Issue issue;
    issue.stage = stage;
    issue.severity = Severity::info;
    issue.code = code;
    issue.node_id = graph[at].id;
    issue.class_type = graph[at].class_type;
    issue.message = "node " + issue.node_id + " (" + issue.class_type + ") " + std::move(message);
    return issue;
}

class Adviser {
public:
    Adviser(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {}

    std::vector<Issue> run() {
        std::map<Digest, Position> first;
        for (Position at = 0; at < graph_.size() && issues_.size() < kAdviceMax; ++at) {
            if (!plan_.needed[at]) {
                add(at, "UNUSED_NODE", "is not needed by any output and will not run");
                continue;
            }
            const auto [before, is_new] = first.emplace(plan_.node_contents[at], at);
            if (!is_new) {
                Issue& issue =
                    add(at,
                        "DUPLICATE_NODE",
                        "does the same as node " + std::string(graph_[before->second].id) +
                            "; one of them is enough");
                issue.details["same_as"] = std::string(graph_[before->second].id);
            }
            look_for_round_trip(at);
        }
        look_at_sampling();
        return std::move(issues_);
    }

private:
    Issue& add(Position at, std::string_view code, std::string message) {
        issues_.push_back(about(graph_, at, Stage::optimization, code, std::move(message)));
        return issues_.back();
    }

    // Pixels that were latents a moment ago.
    void look_for_round_trip(Position at) {
        if (graph_[at].class_type != "VAEEncode") {
            return;
        }
        const Graph::Link* pixels = graph_.link(at, "pixels");
        if (pixels == nullptr || graph_[pixels->source].class_type != "VAEDecode") {
            return;
        }
        const Graph::Link* own = graph_.link(at, "vae");
        const Graph::Link* other = graph_.link(pixels->source, "vae");
        if (own != nullptr && other != nullptr && own->source == other->source) {
            Issue& issue =
                add(at,
                    "REDUNDANT_ROUND_TRIP",
                    "encodes what node " + std::string(graph_[pixels->source].id) +
                        " has just decoded; take the latents from there");
            issue.input = "pixels";
        }
    }

    void look_at_sampling() {
        for (const SamplingPlan& run : plan_.sampling) {
            if (issues_.size() >= kAdviceMax) {
                return;
            }
            const Position at = graph_.find(run.node_id);
            if (run.steps > kManySteps) {
                Issue& issue =
                    add(at,
                        "HIGH_STEP_COUNT",
                        "runs " + std::to_string(run.steps) + " steps; beyond " +
                            std::to_string(kManySteps) + " few samplers still change the picture");
                issue.input = "steps";
                issue.got = run.steps;
            }
            if (run.width % 8 != 0 || run.height % 8 != 0) {
                Issue& issue =
                    add(at,
                        "SIZE_IS_ROUNDED",
                        "works at " + std::to_string(run.width) + "x" + std::to_string(run.height) +
                            "; sizes that are no multiples of 8 are rounded down");
                issue.got = std::to_string(run.width) + "x" + std::to_string(run.height);
                issue.expected =
                    std::to_string(run.width / 8 * 8) + "x" + std::to_string(run.height / 8 * 8);
            }
        }
    }

    const Graph& graph_;
    const Plan& plan_;
    std::vector<Issue> issues_;
};

Issue about_workers(const WorkerLack& lack, std::string_view code) {
    Issue issue;
    issue.stage = Stage::resource;
    issue.code = code;
    issue.message = lack.message();
    issue.details = lack.details();
    return issue;
}

}  // namespace

std::vector<Issue> find_resource_issues(
    const json::object& workflow,
    const Plan& plan,
    const Catalogue& catalogue,
    const ValidationOptions& options
) {
    std::vector<Issue> issues;
    const Requirement requirement = catalogue.requirement_of(workflow).on(options.machine);
    if (const auto lack = find_lack(catalogue, requirement)) {
        issues.push_back(about_workers(*lack, "NO_CAPABLE_WORKER"));
    } else if (const auto silent = find_silent_pool(catalogue, requirement)) {
        issues.push_back(about_workers(*silent, "NO_WORKER_IN_POOL"));
        issues.back().severity = Severity::warning;  // the job would wait for one
    }
    const std::uint64_t memory_mb = plan.vram_bytes / 1'000'000;
    if (options.gpu_memory_mb > 0 && memory_mb > options.gpu_memory_mb) {
        Issue issue;
        issue.stage = Stage::resource;
        issue.severity = Severity::warning;  // an estimate refuses nobody
        issue.code = "INSUFFICIENT_VRAM";
        issue.message = "it may need about " + std::to_string(memory_mb) +
                        " MB of GPU memory; the largest GPU has " +
                        std::to_string(options.gpu_memory_mb) +
                        " MB. A smaller picture, a smaller batch or a quantised model needs less";
        issue.expected = options.gpu_memory_mb;
        issue.got = memory_mb;
        issues.push_back(std::move(issue));
    }
    return issues;
}

std::vector<Issue> find_optimizations(const Graph& graph, const Plan& plan) {
    return Adviser(graph, plan).run();
}

}  // namespace comfyd::workflow
