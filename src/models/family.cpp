#include "models/family.hpp"

#include <algorithm>
#include <array>

namespace comfyd::models {
namespace {

using Sign = FamilySigns::Sign;

enum class Where : std::uint8_t { begins, holds, ends, is };

struct Row {
    Where where;
    std::string_view text;
    Sign sign;
};

constexpr std::array kRows{
    Row{Where::begins, "model.diffusion_model.", Sign::checkpoint_unet},
    Row{Where::begins, "cond_stage_model.", Sign::text_inside},
    Row{Where::begins, "conditioner.embedders.", Sign::text_inside},
    Row{Where::begins, "text_encoders.", Sign::text_inside},
    Row{Where::begins, "first_stage_model.", Sign::vae_inside},
    Row{Where::begins, "vae.", Sign::vae_inside},
    Row{Where::holds, "input_blocks.1.1.transformer_blocks.0.attn2.to_k", Sign::unet},
    Row{Where::holds, "input_blocks.4.1.transformer_blocks.0.attn2.to_k", Sign::unet},
    Row{Where::holds, "input_blocks.4.1.transformer_blocks.1.attn2.to_k", Sign::unet_layer_4},
    Row{Where::holds, "input_blocks.4.1.transformer_blocks.3.attn2.to_k", Sign::unet_layer_4},
    Row{Where::holds, "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k", Sign::unet},
    Row{Where::holds, "joint_blocks.0.context_block.attn.qkv.weight", Sign::joint_blocks},
    Row{Where::holds, "double_blocks.0.img_attn.norm.key_norm.", Sign::double_blocks},
    Row{Where::holds, "guidance_in.in_layer.weight", Sign::guided},
    Row{Where::holds, "distilled_guidance_layer.", Sign::chroma},
    Row{Where::holds, "txt_in.individual_token_refiner.blocks.", Sign::hunyuan_video},
    Row{Where::ends, "head.modulation", Sign::wan},
    Row{Where::holds, "adaln_single.emb.timestep_embedder.linear_1.bias", Sign::ltxv},
    Row{Where::holds, "transformer_blocks.0.attn.add_q_proj.weight", Sign::qwen_image},
    Row{Where::holds, "pos_embed.proj.bias", Sign::pixart},
    Row{Where::holds, ".lora_down.", Sign::lora},
    Row{Where::holds, ".lora_up.", Sign::lora},
    Row{Where::holds, ".lora_A.", Sign::lora},
    Row{Where::holds, ".lora_B.", Sign::lora},
    Row{Where::holds, "_lora.down.", Sign::lora},
    Row{Where::holds, ".hada_w1_a", Sign::lora},
    Row{Where::holds, ".lokr_w1", Sign::lora},
    Row{Where::begins, "lora_te2_", Sign::lora_te2},
    Row{Where::holds, "double_blocks_0_img_", Sign::lora_flux},
    Row{Where::holds, "double_blocks.0.img_", Sign::lora_flux},
    Row{Where::holds, "single_transformer_blocks", Sign::lora_flux},
    Row{Where::holds, "single_blocks", Sign::lora_flux},
    Row{Where::holds, "joint_blocks", Sign::lora_sd3},
    Row{Where::begins, "diffusion_model.blocks.0.cross_attn.", Sign::lora_wan},
    Row{Where::begins, "lora_unet_blocks_0_cross_attn_", Sign::lora_wan},
    // One block more than Flux has.
    Row{Where::holds, "double_blocks.19.", Sign::lora_hunyuan},
    Row{Where::holds, "double_blocks_19_", Sign::lora_hunyuan},
    Row{Where::holds, "single_transformer_blocks.39.", Sign::lora_hunyuan},
    Row{Where::holds, "single_transformer_blocks_39_", Sign::lora_hunyuan},
    Row{Where::holds, "input_hint_block.0.weight", Sign::controlnet},
    Row{Where::begins, "controlnet_cond_embedding.", Sign::controlnet},
    Row{Where::begins, "controlnet_blocks.", Sign::controlnet},
    Row{Where::begins, "control_model.", Sign::controlnet},
    Row{Where::is, "decoder.conv_in.weight", Sign::vae},
    Row{Where::begins, "text_model.encoder.layers.0.", Sign::clip},
    Row{Where::begins, "text_model.encoder.layers.22.", Sign::clip_g},
    Row{Where::begins, "encoder.block.0.layer.0.SelfAttention.", Sign::t5},
    Row{Where::begins, "vision_model.encoder.layers.0.", Sign::clip_vision},
    Row{Where::is, "model.0.weight", Sign::upscale},
    Row{Where::begins, "body.0.rdb1.", Sign::upscale},
};

bool matches(const Row& row, std::string_view name) {
    switch (row.where) {
        case Where::begins:
            return name.starts_with(row.text);
        case Where::ends:
            return name.ends_with(row.text);
        case Where::is:
            return name == row.text;
        case Where::holds:
            break;
    }
    return name.find(row.text) != std::string_view::npos;
}

// Whether the tensor takes in what the text encoder gave: its width tells families of one shape
// apart.
bool takes_text(std::string_view name) {
    const bool is_key = name.find("attn2.to_k") != std::string_view::npos ||
                        name.find("attn2_to_k") != std::string_view::npos;
    const bool is_outer = name.find("lora_up") != std::string_view::npos ||
                          name.find("lora_B") != std::string_view::npos;
    return is_key && !is_outer;
}

}  // namespace

void FamilySigns::see(std::string_view tensor, const std::vector<std::uint64_t>& shape) {
    for (const Row& row : kRows) {
        if (matches(row, tensor)) {
            signs_.set(static_cast<std::size_t>(row.sign));
        }
    }
    if (shape.size() >= 2 && takes_text(tensor)) {
        context_ = std::max(context_, shape[1]);
    }
    constexpr std::uint64_t kWideChannels = 16;
    if (tensor == "decoder.conv_in.weight" && shape.size() >= 2 && shape[1] == kWideChannels) {
        signs_.set(static_cast<std::size_t>(Sign::vae_wide));
    }
}

// Models of one shape differ in the width of their text.
std::string_view FamilySigns::unet_name() const {
    switch (context_) {
        case 768:
            return "sd15";
        case 1024:
            return "sd2";
        case 1280:
            return "sdxl-refiner";
        case 2048:
            return "sdxl";
        default:
            return has(Sign::unet_layer_4) ? "sdxl" : "";
    }
}

std::string_view FamilySigns::transformer_name() const {
    if (has(Sign::hunyuan_video)) {
        return "hunyuan-video";
    }
    if (has(Sign::double_blocks)) {
        return has(Sign::chroma) ? "chroma" : has(Sign::guided) ? "flux" : "flux-schnell";
    }
    if (has(Sign::joint_blocks)) {
        return "sd3";
    }
    if (has(Sign::wan)) {
        return "wan";
    }
    if (has(Sign::ltxv)) {
        return has(Sign::pixart) ? "pixart" : "ltxv";
    }
    return has(Sign::qwen_image) ? "qwen-image" : "";
}

std::string_view FamilySigns::lora_name() const {
    if (has(Sign::lora_hunyuan)) {
        return "hunyuan-video";
    }
    if (has(Sign::lora_flux)) {
        return "flux";
    }
    if (has(Sign::lora_sd3)) {
        return "sd3";
    }
    if (has(Sign::lora_wan)) {
        return "wan";
    }
    return has(Sign::lora_te2) ? "sdxl" : unet_name();
}

Family FamilySigns::judge() const {
    if (has(Sign::lora)) {
        return {"lora", lora_name()};
    }
    if (has(Sign::controlnet)) {
        return {"controlnet", unet_name()};
    }
    const std::string_view transformer = transformer_name();
    const std::string_view model = !transformer.empty() ? transformer
                                   : has(Sign::unet)    ? unet_name()
                                                        : std::string_view();
    if (has(Sign::checkpoint_unet) && (has(Sign::text_inside) || has(Sign::vae_inside))) {
        return {"checkpoint", model};
    }
    if (has(Sign::checkpoint_unet) || has(Sign::unet) || !transformer.empty()) {
        return {"diffusion_model", model};
    }
    if (has(Sign::vae)) {
        return {"vae", has(Sign::vae_wide) ? "16-channel" : "4-channel"};
    }
    if (has(Sign::t5)) {
        return {"text_encoder", "t5"};
    }
    if (has(Sign::clip)) {
        return {"text_encoder", has(Sign::clip_g) ? "clip-g" : "clip-l"};
    }
    if (has(Sign::clip_vision)) {
        return {"clip_vision", ""};
    }
    return has(Sign::upscale) ? Family{"upscale_model", ""} : Family{};
}

bool is_misplaced(std::string_view kind, std::string_view folder) {
    struct Use {
        std::string_view kind;
        std::array<std::string_view, 3> folders;
    };
    // Loaders of checkpoints and of diffusion models take each other's files.
    static constexpr std::array kUses{
        Use{"checkpoint", {"checkpoints", "diffusion_models", "unet"}},
        Use{"diffusion_model", {"checkpoints", "diffusion_models", "unet"}},
        Use{"lora", {"loras"}},
        Use{"controlnet", {"controlnet", "checkpoints", "model_patches"}},
        Use{"vae", {"vae", "vae_approx"}},
        Use{"text_encoder", {"text_encoders", "clip"}},
        Use{"clip_vision", {"clip_vision"}},
        Use{"upscale_model", {"upscale_models", "latent_upscale_models"}},
    };
    const auto names = [folder](const Use& use) {
        return std::ranges::find(use.folders, folder) != use.folders.end();
    };
    const auto known = std::ranges::find(kUses, kind, &Use::kind);
    return known != kUses.end() && std::ranges::any_of(kUses, names) && !names(*known);
}

bool is_of_other_family(std::string_view lora, std::string_view model) {
    struct Group {
        std::string_view family;
        int number;
    };
    // U-Nets differ in the width of the text that they take in, the others in the names of their
    // parts. A LoRA that leaves the last blocks alone may be of any of the family that Flux began.
    static constexpr std::array kGroups{
        Group{"sd15", 1},
        Group{"sd2", 2},
        Group{"sdxl", 3},
        Group{"sdxl-refiner", 4},
        Group{"flux", 5},
        Group{"flux-schnell", 5},
        Group{"chroma", 5},
        Group{"hunyuan-video", 5},
        Group{"sd3", 6},
        Group{"wan", 7},
        Group{"ltxv", 8},
        Group{"pixart", 9},
        Group{"qwen-image", 10},
    };
    const auto of_lora = std::ranges::find(kGroups, lora, &Group::family);
    const auto of_model = std::ranges::find(kGroups, model, &Group::family);
    return of_lora != kGroups.end() && of_model != kGroups.end() &&
           of_lora->number != of_model->number;
}

}  // namespace comfyd::models
