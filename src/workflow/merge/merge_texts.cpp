#include "workflow/merge/merge_texts.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"

namespace comfyd::workflow {
namespace {

// Without what encoders put before and after a text.
constexpr TextLimit kFlux{255, false};
constexpr TextLimit kSd3{75, true};

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

bool is_text_encoder(const Graph::Node& node) {
    return node.class_type.starts_with("CLIPTextEncode");
}

bool is_letter(unsigned char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool is_space(unsigned char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Of a word of so many Latin letters. T5 makes two of a single letter; short words are one, and
// longer ones seldom more than one for three letters.
std::size_t word_tokens(std::size_t letters) {
    if (letters <= 1) {
        return letters * 2;
    }
    return letters <= 4 ? 1 : (letters + 2) / 3;
}

// Measured with the vocabularies of CLIP and T5: digits and signs are a token each, letters beyond
// ASCII a token for each byte to CLIP and for each letter to T5, and T5 begins a word that does not
// begin with a Latin letter with a token more.
std::size_t most_tokens(std::string_view text, bool counts_clip) {
    std::size_t tokens = 0;
    std::size_t letters = 0;
    bool begins = true;
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (is_letter(byte)) {
            ++letters;
            begins = false;
            continue;
        }
        tokens += word_tokens(std::exchange(letters, 0));
        if (is_space(byte)) {
            begins = true;
            continue;
        }
        const bool continues_letter = (byte & 0xC0U) == 0x80U;
        tokens += (continues_letter && !counts_clip ? 0U : 1U) + (begins ? 1U : 0U);
        begins = false;
    }
    return tokens + word_tokens(letters);
}

}  // namespace

bool fills_texts_up(const Graph::Node& loader) {
    if (loader.class_type != "CLIPLoader" && loader.class_type != "DualCLIPLoader") {
        return true;
    }
    return has_type(loader, "stable_diffusion") || has_type(loader, "sdxl") ||
           has_type(loader, "sd3") || has_type(loader, "flux");
}

std::optional<TextLimit> text_limit(const Graph& graph) {
    if (std::ranges::any_of(graph.nodes(), is_flux)) {
        return kFlux;
    }
    if (std::ranges::any_of(graph.nodes(), is_sd3)) {
        return kSd3;
    }
    return std::nullopt;
}

bool may_be_longer(std::string_view text, const TextLimit& limit) {
    // What an embedding stands for may have any number of tokens.
    return text.find("embedding:") != std::string_view::npos ||
           most_tokens(text, limit.counts_clip) > limit.tokens;
}

std::string find_long_text(
    const Graph& graph, Graph::Position conditioning, const TextLimit& limit
) {
    const std::vector<bool> needed = graph.needed_by({conditioning});
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (!needed[at] || !is_text_encoder(graph[at])) {
            continue;
        }
        for (const auto& input : *graph[at].inputs) {
            const auto* text = input.value().if_string();
            if (text != nullptr && may_be_longer({text->data(), text->size()}, limit)) {
                return std::string(graph[at].id);
            }
        }
    }
    return {};
}

std::vector<UnusualText> find_unusual_texts(
    const Graph& graph, const std::vector<bool>& needed, const std::vector<std::size_t>& shapes
) {
    std::vector<UnusualText> found;
    const std::optional<TextLimit> limit = text_limit(graph);
    for (Graph::Position at = 0; limit && at < graph.size(); ++at) {
        if (!needed[at] || !is_text_encoder(graph[at])) {
            continue;
        }
        const json::value* padding = graph[at].inputs->if_contains("empty_padding");
        const bool leaves_out = padding != nullptr && *padding == "none";
        for (const auto& input : *graph[at].inputs) {
            const auto* text = input.value().if_string();
            if (text == nullptr) {
                continue;
            }
            const std::string_view view(text->data(), text->size());
            if ((leaves_out && view.empty()) || may_be_longer(view, *limit)) {
                std::string what = std::to_string(shapes[at]);
                what.append("\n").append(input.key()).append("\n").append(view);
                found.push_back({std::move(what), at});
            }
        }
    }
    std::ranges::sort(found, {}, &UnusualText::what);
    return found;
}

}  // namespace comfyd::workflow
