#include "workflow/catalogue/models.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::uint64_t kMB = 1'000'000;
constexpr std::size_t kModelsMax = 1'000;

struct KnownInput {
    std::string_view class_type;  // a part of the class's name; empty: any
    std::string_view input;
    ModelKind kind;
};
// The first that fits counts.
constexpr std::array kInputs{
    KnownInput{"CLIPVision", "clip_name", ModelKind::clip_vision},
    KnownInput{"", "ckpt_name", ModelKind::checkpoint},
    KnownInput{"", "base_ckpt_name", ModelKind::checkpoint},
    KnownInput{"", "refiner_ckpt_name", ModelKind::checkpoint},
    KnownInput{"", "unet_name", ModelKind::unet},
    KnownInput{"", "lora_name", ModelKind::lora},
    KnownInput{"", "vae_name", ModelKind::vae},
    KnownInput{"", "clip_name", ModelKind::clip},
    KnownInput{"", "clip_name1", ModelKind::clip},
    KnownInput{"", "clip_name2", ModelKind::clip},
    KnownInput{"", "clip_name3", ModelKind::clip},
    KnownInput{"", "clip_name4", ModelKind::clip},
    KnownInput{"", "text_encoder", ModelKind::clip},
    KnownInput{"", "clip_vision_name", ModelKind::clip_vision},
    KnownInput{"", "control_net_name", ModelKind::controlnet},
    KnownInput{"", "controlnet_name", ModelKind::controlnet},
    KnownInput{"Upscale", "model_name", ModelKind::upscale},
    KnownInput{"", "upscale_model_name", ModelKind::upscale},
    KnownInput{"", "style_model_name", ModelKind::style},
    KnownInput{"", "gligen_name", ModelKind::gligen},
    KnownInput{"", "hypernetwork_name", ModelKind::hypernetwork},
    KnownInput{"", "ipadapter_file", ModelKind::ipadapter},
    KnownInput{"", "photomaker_model_name", ModelKind::other},
    KnownInput{"", "model_name", ModelKind::other},
};

constexpr std::array<std::string_view, 9> kExtensions{
    ".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".pt2", ".bin", ".gguf", ".onnx"
};

bool has_any(const std::string& name, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) {
        return name.find(word) != std::string::npos;
    });
}

// Names come with folders, versions and the habits of their makers; the words are common ones.
ModelFamily family_of_name(std::string_view model) {
    const std::string name = lower(model);
    if (has_any(
            name, {"wan2", "wan_2", "hunyuan", "ltx", "mochi", "cosmos", "svd", "animatediff"}
        )) {
        return ModelFamily::video;
    }
    if (has_any(name, {"flux", "chroma", "qwen", "hidream"})) {
        return ModelFamily::flux;
    }
    if (has_any(name, {"sd3", "auraflow", "lumina", "z_image"})) {
        return ModelFamily::sd3;
    }
    if (has_any(name, {"xl", "pony", "illustrious", "noobai"})) {
        return ModelFamily::sdxl;
    }
    if (has_any(name, {"sd15", "sd1.5", "sd_1.5", "v1-5", "v1-4", "sd14"})) {
        return ModelFamily::sd15;
    }
    return ModelFamily::none;
}

// What a checkpoint has beyond its diffusion model is small beside the spread of these.
std::uint64_t weights_mb(ModelFamily family, const std::string& name) {
    const bool small = has_any(name, {"fp8", "e4m3", "q8", "int8"});
    const bool tiny = has_any(name, {"q4", "nf4", "fp4", "int4"});
    std::uint64_t full = 2'100;
    switch (family) {
        case ModelFamily::none:
        case ModelFamily::sd15:
            break;
        case ModelFamily::sdxl:
            full = 6'900;
            break;
        case ModelFamily::sd3:
            full = 10'900;
            break;
        case ModelFamily::flux:
            full = 23'800;
            break;
        case ModelFamily::video:
            full = 28'000;
            break;
    }
    return tiny ? full / 4 : small ? full / 2 : full;
}

std::uint64_t usual_bytes(ModelKind kind, std::string_view model) {
    const std::string name = lower(model);
    switch (kind) {
        case ModelKind::checkpoint:
        case ModelKind::unet:
            return weights_mb(family_of_name(model), name) * kMB;
        case ModelKind::clip:
            return (has_any(name, {"t5", "xxl", "llama", "qwen", "gemma", "umt5"}) ? 9'800 : 1'000
                   ) *
                   (has_any(name, {"fp8", "e4m3"}) ? kMB / 2 : kMB);
        case ModelKind::clip_vision:
            return 1'300 * kMB;
        case ModelKind::controlnet:
            return 1'500 * kMB;
        case ModelKind::ipadapter:
            return 800 * kMB;
        case ModelKind::vae:
            return 340 * kMB;
        case ModelKind::lora:
            return 200 * kMB;
        case ModelKind::upscale:
            return 70 * kMB;
        case ModelKind::embedding:
            return kMB / 10;
        case ModelKind::style:
        case ModelKind::gligen:
        case ModelKind::hypernetwork:
        case ModelKind::other:
            return 500 * kMB;
    }
    return 0;
}

class Finder {
public:
    Finder(const PromptClasses& classes, const ModelSizes& sizes, const ModelFiles& files)
        : classes_(classes), sizes_(sizes), files_(files) {}

    void look_at(const Graph::Node& node) {
        const NodeDefinition* definition = classes_.find(node.class_type);
        for (const auto& input : *node.inputs) {
            const auto* text = input.value().if_string();
            if (text == nullptr || text->empty()) {
                continue;
            }
            const std::string_view name = view(input.key());
            if (const auto kind = kind_of(node, definition, name, view(*text))) {
                add(*kind, view(*text), node, name);
            } else {
                look_for_embeddings(node, name, view(*text));
            }
        }
    }
    std::vector<ModelNeed> take() { return std::move(found_); }

private:
    std::optional<ModelKind> kind_of(
        const Graph::Node& node,
        const NodeDefinition* definition,
        std::string_view input,
        std::string_view value
    ) const {
        if (value == "None" || value == "none" || value == "Baked VAE") {
            return std::nullopt;
        }
        if (const auto kind = model_kind(node.class_type, input)) {
            return kind;
        }
        if (!is_model_file(value)) {
            return std::nullopt;
        }
        const InputDefinition* known =
            definition != nullptr ? definition->find_input(input, *node.inputs) : nullptr;
        return known != nullptr && known->choices != nullptr && !known->takes_upload()
                   ? std::optional(ModelKind::other)
                   : std::nullopt;
    }

    void look_for_embeddings(
        const Graph::Node& node, std::string_view input, std::string_view text
    ) {
        static constexpr std::string_view kMark = "embedding:";
        for (auto at = text.find(kMark); at != std::string_view::npos;
             at = text.find(kMark, at + kMark.size())) {
            const std::string_view rest = text.substr(at + kMark.size());
            const std::string_view name = rest.substr(0, rest.find_first_of(" ,:()\t\r\n\""));
            if (!name.empty() && name.size() <= 255) {
                add(ModelKind::embedding, name, node, input);
            }
        }
    }

    void add(
        ModelKind kind, std::string_view name, const Graph::Node& node, std::string_view input
    ) {
        if (found_.size() == kModelsMax || !seen_.emplace(kind, name).second) {
            return;
        }
        ModelNeed need;
        need.name = name;
        need.kind = kind;
        need.node_id = node.id;
        need.input = input;
        need.size_bytes = sizes_ ? sizes_(kind, name) : std::nullopt;
        const ModelFacts facts = files_.find ? files_.find(kind, name) : ModelFacts();
        need.family = facts.family;
        need.is_read = !need.size_bytes && facts.bytes;
        need.size_bytes = need.is_read ? facts.bytes : need.size_bytes;
        need.estimated_bytes = need.size_bytes ? *need.size_bytes : usual_bytes(kind, name);
        found_.push_back(std::move(need));
    }

    const PromptClasses& classes_;
    const ModelSizes& sizes_;
    const ModelFiles& files_;
    std::set<std::pair<ModelKind, std::string_view>> seen_;
    std::vector<ModelNeed> found_;
};

}  // namespace

std::string_view to_string(ModelKind kind) {
    switch (kind) {
        case ModelKind::checkpoint:
            return "checkpoint";
        case ModelKind::unet:
            return "unet";
        case ModelKind::lora:
            return "lora";
        case ModelKind::vae:
            return "vae";
        case ModelKind::clip:
            return "clip";
        case ModelKind::clip_vision:
            return "clip_vision";
        case ModelKind::controlnet:
            return "controlnet";
        case ModelKind::upscale:
            return "upscale";
        case ModelKind::style:
            return "style";
        case ModelKind::gligen:
            return "gligen";
        case ModelKind::hypernetwork:
            return "hypernetwork";
        case ModelKind::ipadapter:
            return "ipadapter";
        case ModelKind::embedding:
            return "embedding";
        case ModelKind::other:
            return "other";
    }
    return "";
}

std::string_view to_string(ModelFamily family) {
    switch (family) {
        case ModelFamily::none:
            return "none";
        case ModelFamily::sd15:
            return "sd15";
        case ModelFamily::sdxl:
            return "sdxl";
        case ModelFamily::sd3:
            return "sd3";
        case ModelFamily::flux:
            return "flux";
        case ModelFamily::video:
            return "video";
    }
    return "";
}

bool is_model_input(std::string_view input) {
    return std::ranges::any_of(kInputs, [&](const KnownInput& known) {
        return known.input == input;
    });
}

std::optional<ModelKind> model_kind(std::string_view class_type, std::string_view input) {
    for (const KnownInput& known : kInputs) {
        if (known.input == input && class_type.find(known.class_type) != std::string_view::npos) {
            return known.kind;
        }
    }
    return std::nullopt;
}

bool is_model_file(std::string_view name) {
    return std::ranges::any_of(kExtensions, [&](std::string_view end) {
        return name.ends_with(end);
    });
}

std::vector<ModelNeed> find_models(
    const Graph& graph,
    const std::vector<bool>& needed,
    const PromptClasses& classes,
    const ModelSizes& sizes,
    const ModelFiles& files
) {
    Finder finder(classes, sizes, files);
    for (Graph::Position at = 0; at < graph.size(); ++at) {
        if (needed.empty() || needed[at]) {
            finder.look_at(graph[at]);
        }
    }
    return finder.take();
}

ModelFamily find_family(const Graph& graph, const std::vector<ModelNeed>& models) {
    auto family = ModelFamily::none;
    bool has_model = false;
    for (const ModelNeed& model : models) {
        if (model.kind == ModelKind::checkpoint || model.kind == ModelKind::unet) {
            has_model = true;
            const bool is_known = model.family != ModelFamily::none;
            family = std::max(family, is_known ? model.family : family_of_name(model.name));
        }
    }
    if (!has_model || family != ModelFamily::none) {
        return family;
    }
    for (const Graph::Node& node : graph.nodes()) {
        if (node.class_type.find("LatentVideo") != std::string_view::npos) {
            return ModelFamily::video;
        }
        if (node.class_type == "FluxGuidance" || node.class_type == "ModelSamplingFlux") {
            return ModelFamily::flux;
        }
        if (node.class_type == "EmptySD3LatentImage") {
            return ModelFamily::sd3;
        }
        if (node.class_type.starts_with("CLIPTextEncodeSDXL")) {
            return ModelFamily::sdxl;
        }
    }
    return ModelFamily::sd15;
}

}  // namespace comfyd::workflow
