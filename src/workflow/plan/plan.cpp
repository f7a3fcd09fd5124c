#include "workflow/plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "workflow/parameters/parameters_roles.hpp"

namespace comfyd::workflow {
namespace {

using Position = Graph::Position;

constexpr double kUnitPixels = 512.0 * 512.0;
constexpr std::int64_t kSizeMax = 16'384;
constexpr std::int64_t kStepsMax = 10'000;
constexpr std::int64_t kBatchMax = 4'096;
constexpr std::size_t kSamplersPlanned = 256;  // the others count as the last of these

// Work of a step for each pixel, against SD 1.5; measured for SDXL, derived from the number of
// parameters for the others.
double step_factor(ModelFamily family) {
    switch (family) {
        case ModelFamily::none:
        case ModelFamily::sd15:
            return 1;
        case ModelFamily::sdxl:
            return 1.25;
        case ModelFamily::sd3:
            return 2.5;
        case ModelFamily::flux:
            return 5;
        case ModelFamily::video:
            return 8;
    }
    return 1;
}

std::int64_t usual_side(ModelFamily family) {
    return family == ModelFamily::none || family == ModelFamily::sd15 ? 512 : 1024;
}

std::optional<double> number_at(const Graph& graph, const std::vector<InputPlace>& places) {
    const json::value* value = places.empty() ? nullptr : value_at(graph, places.front());
    if (value == nullptr || !value->is_number()) {
        return std::nullopt;
    }
    return value->to_number<double>();
}

std::optional<double> number_of(const Graph& graph, Position node, std::string_view input) {
    const json::value* value =
        graph[node].inputs->if_contains(boost::json::string_view(input.data(), input.size()));
    return value != nullptr && value->is_number() ? std::optional(value->to_number<double>())
                                                  : std::nullopt;
}

std::int64_t whole(std::optional<double> number, std::int64_t otherwise, std::int64_t max) {
    if (!number || !std::isfinite(*number)) {
        return otherwise;
    }
    return static_cast<std::int64_t>(std::clamp(*number, 1.0, static_cast<double>(max)));
}

std::int64_t steps_of(const Graph& graph, Position sampler) {
    const std::int64_t all =
        whole(number_at(graph, find_places(graph, sampler, Role::steps)), 20, kStepsMax);
    const auto start = number_of(graph, sampler, "start_at_step");
    const auto end = number_of(graph, sampler, "end_at_step");
    if (!start && !end) {
        return all;
    }
    const double first = std::clamp(start.value_or(0), 0.0, static_cast<double>(all));
    const double last = std::clamp(end.value_or(1e9), first, static_cast<double>(all));
    return static_cast<std::int64_t>(last - first);
}

SamplingPlan plan_sampler(const Graph& graph, Position sampler, ModelFamily family) {
    const auto number = [&](Role role) {
        return number_at(graph, find_places(graph, sampler, role));
    };
    SamplingPlan made;
    made.node_id = graph[sampler].id;
    made.steps = steps_of(graph, sampler);
    made.width = whole(number(Role::width), usual_side(family), kSizeMax);
    made.height = whole(number(Role::height), usual_side(family), kSizeMax);
    const auto batch = find_places(graph, sampler, Role::batch_size);
    made.batch_size = whole(number_at(graph, batch), 1, kBatchMax);
    if (!batch.empty()) {
        // The node that sets the size of a video also says how long it is.
        made.frames = whole(number_of(graph, batch.front().node, "length"), 1, kBatchMax);
    }
    const double latent_frames = 1 + static_cast<double>(made.frames - 1) / 4;
    const double pixels = static_cast<double>(made.width) * static_cast<double>(made.height);
    const auto cfg = number(Role::cfg);
    // Without guidance there is one pass a step and not two.
    const double passes =
        cfg && *cfg == 1 && (family == ModelFamily::sd15 || family == ModelFamily::sdxl) ? 0.5 : 1;
    made.work_units = static_cast<double>(made.steps) * pixels / kUnitPixels * latent_frames *
                      static_cast<double>(made.batch_size) * step_factor(family) * passes;
    return made;
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

class Planner {
public:
    Planner(const Graph& graph, const PromptClasses& classes, const PlanOptions& options)
        : graph_(graph), classes_(classes), options_(options) {}

    std::vector<double> work() {
        plan_work(find_outputs(graph_, classes_));
        return std::move(plan_.weights);
    }

    Plan run() {
        const std::vector<Position> outputs = find_outputs(graph_, classes_);
        plan_work(outputs);
        normalise_weights();
        add_stages();
        estimate_memory();
        Fingerprints keys = make_fingerprints(graph_, outputs, classes_, options_.input_hashes);
        plan_.batch_key = std::move(keys.batch);
        plan_.fingerprint = std::move(keys.content);
        plan_.node_contents = std::move(keys.nodes);
        estimate_time();
        plan_.needed = std::move(needed_);
        return std::move(plan_);
    }

private:
    void plan_work(const std::vector<Position>& outputs) {
        needed_ = graph_.needed_by(outputs);
        plan_.models =
            find_models(graph_, needed_, classes_, options_.model_sizes, options_.model_files);
        plan_.family = find_family(graph_, plan_.models);
        plan_samplers();
        weigh_nodes();
    }

    void plan_samplers() {
        sampler_units_.assign(graph_.size(), 0);
        for (const Position at : find_samplers(graph_)) {
            if (!needed_[at]) {
                continue;
            }
            if (plan_.sampling.size() < kSamplersPlanned) {
                plan_.sampling.push_back(plan_sampler(graph_, at, plan_.family));
            }
            const SamplingPlan& sampling = plan_.sampling.back();
            sampler_units_[at] = std::max(sampling.work_units, 0.1);
            pixels_max_ = std::max(
                pixels_max_,
                static_cast<double>(sampling.width * sampling.height) *
                    static_cast<double>(sampling.batch_size * sampling.frames)
            );
        }
    }

    // In units of work.
    double weigh(Position at) const {
        if (sampler_units_[at] > 0) {
            return sampler_units_[at];
        }
        const std::string_view name = graph_[at].class_type;
        const double frames = std::max(pixels_max_ / kUnitPixels, 1.0);
        if (has(name, "VAEDecode") || has(name, "VAEEncode")) {
            return 2 * frames;
        }
        if (has(name, "UpscaleWithModel")) {
            return 6 * frames;
        }
        if (has(name, "ControlNetApply") || has(name, "TextEncode")) {
            return 0.5;
        }
        if (has(name, "Save") || has(name, "Preview")) {
            return 0.5 * frames;
        }
        return has(name, "Loader") ? 1 : 0.1;
    }

    void weigh_nodes() {
        plan_.weights.assign(graph_.size(), 0);
        for (Position at = 0; at < graph_.size(); ++at) {
            if (needed_[at]) {
                plan_.weights[at] = weigh(at);
                plan_.work_units += plan_.weights[at];
            }
        }
    }

    void normalise_weights() {
        for (double& weight : plan_.weights) {
            weight = plan_.work_units > 0 ? weight / plan_.work_units : 0;
        }
    }

    void add_stages() {
        for (const Position at : graph_.order()) {
            if (needed_[at]) {
                const std::size_t level = graph_.levels()[at];
                plan_.stages.resize(std::max(plan_.stages.size(), level + 1));
                plan_.stages[level].emplace_back(graph_[at].id);
            }
        }
    }

    // The diffusion model, what steers it and its activations are in memory together; text encoders
    // have done their part by then.
    void estimate_memory() {
        std::uint64_t largest = 0;
        std::uint64_t beside = 0;
        for (const ModelNeed& model : plan_.models) {
            plan_.model_bytes += model.estimated_bytes;
            if (model.kind == ModelKind::lora || model.kind == ModelKind::embedding) {
                continue;  // merged into the weights
            }
            if (model.kind == ModelKind::controlnet || model.kind == ModelKind::ipadapter ||
                model.kind == ModelKind::vae) {
                beside += model.estimated_bytes;
            } else {
                largest = std::max(largest, model.estimated_bytes);
            }
        }
        if (plan_.models.empty() && plan_.sampling.empty()) {
            return;  // nothing that a GPU is needed for
        }
        const double megapixels = pixels_max_ / 1e6;
        const double activations_mb = 400 + 900 * megapixels * std::sqrt(step_factor(plan_.family));
        plan_.vram_bytes = largest + beside + static_cast<std::uint64_t>(activations_mb * 1e6);
    }

    void estimate_time() {
        plan_.heuristic_seconds = plan_.work_units * options_.seconds_per_unit;
        plan_.run_seconds = plan_.heuristic_seconds;
        if (options_.history) {
            if (const auto known = options_.history(graph_, plan_)) {
                plan_.run_seconds = known->seconds;
                plan_.estimate_basis = known->basis;
                plan_.confidence = known->confidence;
                plan_.vram_learned = known->vram_bytes;
            }
        }
        plan_.load_seconds = static_cast<double>(plan_.model_bytes) / 1e6 /
                             std::max(options_.load_mb_per_second, 1.0);
        const double gigabytes =
            static_cast<double>(plan_.vram_learned.value_or(plan_.vram_bytes)) / 1e9;
        const double memory_share = std::min(gigabytes / 24, 1.0);
        plan_.cost_usd =
            std::round(
                plan_.run_seconds * options_.gpu_second_usd * (1 + memory_share * 0.5) * 1e6
            ) /
            1e6;
    }

    const Graph& graph_;
    const PromptClasses& classes_;
    const PlanOptions& options_;
    std::vector<bool> needed_;
    std::vector<double> sampler_units_;  // by position
    double pixels_max_ = 0;              // of one sampling, all pictures together
    Plan plan_;
};

double rounded(double number) {
    return std::round(number * 1000) / 1000;
}

json::object model_json(const ModelNeed& model) {
    json::object made{
        {"name", model.name},
        {"kind", to_string(model.kind)},
        {"node_id", model.node_id},
        {"input", model.input},
        {"estimated_bytes", model.estimated_bytes},
    };
    made["size_bytes"] = model.size_bytes ? json::value(*model.size_bytes) : json::value(nullptr);
    made["size_source"] = model.is_read ? "file" : model.size_bytes ? "configured" : "estimated";
    return made;
}

}  // namespace

std::vector<Position> find_outputs(const Graph& graph, const PromptClasses& classes) {
    std::vector<Position> found;
    bool knows_any = false;
    for (Position at = 0; at < graph.size(); ++at) {
        const NodeDefinition* definition = classes.find(graph[at].class_type);
        knows_any = knows_any || definition != nullptr;
        if (definition != nullptr && definition->output_node()) {
            found.push_back(at);
        }
    }
    return knows_any ? found : graph.ends();
}

std::vector<double> node_work(const Graph& graph, const PromptClasses& classes) {
    return Planner(graph, classes, PlanOptions()).work();
}

Plan make_plan(const Graph& graph, const PromptClasses& classes, const PlanOptions& options) {
    return Planner(graph, classes, options).run();
}

json::object Plan::to_json(const Graph& graph) const {
    json::object made;
    json::array needs;
    for (const ModelNeed& model : models) {
        needs.emplace_back(model_json(model));
    }
    made["models"] = std::move(needs);
    made["model_family"] = to_string(family);
    json::array runs;
    for (const SamplingPlan& run : sampling) {
        runs.emplace_back(json::object{
            {"node_id", run.node_id},
            {"steps", run.steps},
            {"width", run.width},
            {"height", run.height},
            {"frames", run.frames},
            {"batch_size", run.batch_size},
            {"work_units", rounded(run.work_units)},
        });
    }
    made["sampling"] = std::move(runs);
    made["model_bytes"] = model_bytes;
    made["estimated_vram_mb"] = vram_learned.value_or(vram_bytes) / 1'000'000;
    made["vram_source"] = vram_learned ? "learned" : "estimated";
    made["work_units"] = rounded(work_units);
    made["estimated_duration_seconds"] = rounded(run_seconds);
    made["estimated_load_seconds"] = rounded(load_seconds);
    made["estimate_basis"] = estimate_basis;
    made["estimate_confidence"] = std::round(confidence * 100) / 100;
    made["estimated_cost_usd"] = cost_usd;
    json::object shares;
    for (std::size_t at = 0; at < weights.size(); ++at) {
        if (weights[at] > 0) {
            const std::string_view id = graph[at].id;
            shares[boost::json::string_view(id.data(), id.size())] =
                std::round(weights[at] * 1e6) / 1e6;
        }
    }
    made["node_weights"] = std::move(shares);
    json::array levels;
    for (const auto& stage : stages) {
        levels.emplace_back(json::array(stage.begin(), stage.end()));
    }
    made["parallel_stages"] = std::move(levels);
    made["batch_key"] = batch_key;
    made["fingerprint"] = fingerprint;
    return made;
}

}  // namespace comfyd::workflow
