#include "workflow/merge_texts.hpp"

#include <algorithm>

namespace comfyd::workflow {
namespace {

// A token has more than four letters on average and seldom less than three.
constexpr std::size_t kBytesPerToken = 3;
constexpr std::size_t kFluxTokens = 256;
constexpr std::size_t kSd3Tokens = 77;

bool has_type(const Graph::Node& node, std::string_view type) {
    const json::value* value = node.inputs->if_contains("type");
    return value != nullptr && value->is_string() && value->get_string() == type;
}

bool is_flux(const Graph::Node& node) {
    return node.class_type == "CLIPTextEncodeFlux" || node.class_type == "FluxGuidance" ||
           (node.class_type == "DualCLIPLoader" && has_type(node, "flux"));
}

bool is_sd3(const Graph::Node& node) {
    return node.class_type == "CLIPTextEncodeSD3" || node.class_type == "EmptySD3LatentImage" ||
           node.class_type == "TripleCLIPLoader" || has_type(node, "sd3");
}

}  // namespace

bool fills_texts_up(const Graph::Node& loader) {
    if (loader.class_type != "CLIPLoader" && loader.class_type != "DualCLIPLoader") {
        return true;
    }
    return has_type(loader, "stable_diffusion") || has_type(loader, "sdxl") ||
           has_type(loader, "sd3") || has_type(loader, "flux");
}

std::optional<std::size_t> text_bytes_max(const Graph& graph) {
    if (std::ranges::any_of(graph.nodes(), is_flux)) {
        return kFluxTokens * kBytesPerToken;
    }
    if (std::ranges::any_of(graph.nodes(), is_sd3)) {
        return kSd3Tokens * kBytesPerToken;
    }
    return std::nullopt;
}

std::string find_long_text(
    const Graph& graph, Graph::Position conditioning, std::size_t bytes_max
) {
    const std::vector<bool> needed = graph.needed_by({conditioning});
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (!needed[at] || !graph[at].class_type.starts_with("CLIPTextEncode")) {
            continue;
        }
        for (const auto& input : *graph[at].inputs) {
            const auto* text = input.value().if_string();
            if (text != nullptr && text->size() > bytes_max) {
                return std::string(graph[at].id);
            }
        }
    }
    return {};
}

}  // namespace comfyd::workflow
