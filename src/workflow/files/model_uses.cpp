#include "workflow/files/model_uses.hpp"

#include <array>

#include "base/text.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::size_t kUsesMax = 1'000;

bool is_address(std::string_view value) {
    return value.find("://") != std::string_view::npos || value.starts_with("hf:") ||
           value.starts_with("civitai:");
}

}  // namespace

std::span<const std::string_view> model_folders(ModelKind kind) {
    using Names = std::string_view;
    static constexpr std::array<Names, 1> kCheckpoint{"checkpoints"};
    static constexpr std::array<Names, 2> kUnet{"diffusion_models", "unet"};
    static constexpr std::array<Names, 1> kLora{"loras"};
    static constexpr std::array<Names, 2> kVae{"vae", "vae_approx"};
    static constexpr std::array<Names, 2> kClip{"text_encoders", "clip"};
    static constexpr std::array<Names, 1> kClipVision{"clip_vision"};
    static constexpr std::array<Names, 2> kControlnet{"controlnet", "t2i_adapter"};
    static constexpr std::array<Names, 1> kUpscale{"upscale_models"};
    static constexpr std::array<Names, 1> kStyle{"style_models"};
    static constexpr std::array<Names, 1> kGligen{"gligen"};
    static constexpr std::array<Names, 1> kHypernetwork{"hypernetworks"};
    static constexpr std::array<Names, 1> kIpadapter{"ipadapter"};
    static constexpr std::array<Names, 1> kEmbedding{"embeddings"};
    switch (kind) {
        case ModelKind::checkpoint:
            return kCheckpoint;
        case ModelKind::unet:
            return kUnet;
        case ModelKind::lora:
            return kLora;
        case ModelKind::vae:
            return kVae;
        case ModelKind::clip:
            return kClip;
        case ModelKind::clip_vision:
            return kClipVision;
        case ModelKind::controlnet:
            return kControlnet;
        case ModelKind::upscale:
            return kUpscale;
        case ModelKind::style:
            return kStyle;
        case ModelKind::gligen:
            return kGligen;
        case ModelKind::hypernetwork:
            return kHypernetwork;
        case ModelKind::ipadapter:
            return kIpadapter;
        case ModelKind::embedding:
            return kEmbedding;
        case ModelKind::other:
            break;
    }
    return {};
}

std::vector<ModelUse> find_model_uses(const json::object& workflow, const PromptClasses& classes) {
    std::vector<ModelUse> uses;
    for (const auto& entry : workflow) {
        const json::object* node = entry.value().if_object();
        const json::value* type = node == nullptr ? nullptr : json::find(*node, "class_type");
        const json::value* inputs = node == nullptr ? nullptr : json::find(*node, "inputs");
        if (type == nullptr || !type->is_string() || inputs == nullptr || !inputs->is_object()) {
            continue;
        }
        const std::string_view class_type = view(type->get_string());
        const NodeDefinition* definition = nullptr;
        for (const auto& input : inputs->get_object()) {
            const auto* text = input.value().if_string();
            const std::string_view name = view(input.key());
            if (text == nullptr || text->empty()) {
                continue;
            }
            const std::string_view value = view(*text);
            auto kind = model_kind(class_type, name);
            if (!kind && is_model_file(value)) {
                kind = ModelKind::other;
            }
            if (!kind || (!is_model_file(value) && !is_address(value))) {
                continue;
            }
            definition = definition == nullptr ? classes.find(class_type) : definition;
            const InputDefinition* known = definition == nullptr
                                               ? nullptr
                                               : definition->find_input(name, inputs->get_object());
            if (known == nullptr || known->choices == nullptr || known->takes_upload() ||
                uses.size() == kUsesMax) {
                continue;
            }
            uses.push_back(
                {std::string(view(entry.key())),
                 std::string(class_type),
                 std::string(name),
                 std::string(value),
                 *kind,
                 known->offers(input.value())}
            );
        }
    }
    return uses;
}

}  // namespace comfyd::workflow
