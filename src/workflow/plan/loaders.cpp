#include "workflow/plan/loaders.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workflow/graph/graph.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::array<std::string_view, 10> kModelTypes{
    "MODEL",
    "CLIP",
    "VAE",
    "CONTROL_NET",
    "CLIP_VISION",
    "STYLE_MODEL",
    "GLIGEN",
    "UPSCALE_MODEL",
    "AUDIO_ENCODER",
    "MODEL_PATCH"
};

// It gives models alone, and takes no file that a client has sent.
bool gives_models(const NodeDefinition* definition, const json::object& inputs) {
    if (definition == nullptr || definition->output_node() || definition->outputs().empty()) {
        return false;
    }
    const bool takes_uploads =
        std::ranges::any_of(definition->inputs_for(inputs), &InputDefinition::takes_upload);
    return !takes_uploads && std::ranges::all_of(definition->outputs(), [](const auto& type) {
        return std::ranges::count(kModelTypes, type) > 0;
    });
}

}  // namespace

json::object loaders_of(const json::object& workflow, const PromptClasses& classes) {
    const Graph graph(workflow);
    std::vector<bool> is_kept(graph.size());
    for (const Graph::Position at : graph.order()) {
        is_kept[at] = gives_models(classes.find(graph[at].class_type), *graph[at].inputs) &&
                      std::ranges::all_of(graph.links(at), [&](const Graph::Link& link) {
                          return link.source != Graph::kNone && is_kept[link.source];
                      });
    }
    std::set<std::pair<Graph::Position, int>> taken;
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        for (const Graph::Link& link : graph.links(at)) {
            if (!is_kept[at] && link.source != Graph::kNone && is_kept[link.source]) {
                taken.emplace(link.source, link.slot);
            }
        }
    }
    json::object prompt;
    json::object inputs;
    std::vector<Graph::Position> ends;
    for (const auto& [source, slot] : taken) {
        if (inputs.size() < kWarmInputsMax) {
            inputs["loaded" + std::to_string(inputs.size())] =
                json::array{std::string(graph[source].id), slot};
            ends.push_back(source);
        }
    }
    if (inputs.empty()) {
        return prompt;
    }
    const std::vector<bool> needed = graph.needed_by(ends);
    std::string sink = "comfyd_warm";
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (needed[at]) {
            prompt[graph[at].id] = *json::find(workflow, graph[at].id);
        }
        sink += graph[at].id == sink ? "_" : "";
    }
    prompt[sink] = json::object{
        {"class_type", kWarmClass},
        {"inputs", std::move(inputs)},
    };
    return prompt;
}

}  // namespace comfyd::workflow
