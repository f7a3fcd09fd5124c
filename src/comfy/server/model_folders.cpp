#include "comfy/server/model_folders.hpp"

#include <algorithm>
#include <array>

namespace comfyd::comfy::server {
namespace {

constexpr std::array<ModelFolder, 27> kModelFolders{{
    {"checkpoints", "CheckpointLoaderSimple", "ckpt_name"},
    {"configs", "CheckpointLoader", "config_name"},
    {"loras", "LoraLoader", "lora_name"},
    {"vae", "VAELoader", "vae_name"},
    {"text_encoders", "CLIPLoader", "clip_name"},
    {"diffusion_models", "UNETLoader", "unet_name"},
    {"clip_vision", "CLIPVisionLoader", "clip_name"},
    {"style_models", "StyleModelLoader", "style_model_name"},
    {"embeddings", "", ""},
    {"diffusers", "DiffusersLoader", "model_path"},
    {"vae_approx", "", ""},
    {"controlnet", "ControlNetLoader", "control_net_name"},
    {"gligen", "GLIGENLoader", "gligen_name"},
    {"upscale_models", "UpscaleModelLoader", "model_name"},
    {"latent_upscale_models", "LatentUpscaleModelLoader", "model_name"},
    {"custom_nodes", "", ""},
    {"datasets", "", ""},
    {"hypernetworks", "HypernetworkLoader", "hypernetwork_name"},
    {"photomaker", "PhotoMakerLoader", "photomaker_model_name"},
    {"classifiers", "", ""},
    {"model_patches", "ModelPatchLoader", "name"},
    {"audio_encoders", "AudioEncoderLoader", "audio_encoder_name"},
    {"background_removal", "", ""},
    {"frame_interpolation", "", ""},
    {"geometry_estimation", "", ""},
    {"optical_flow", "", ""},
    {"detection", "", ""},
}};

}  // namespace

std::span<const ModelFolder> model_folders() {
    return kModelFolders;
}

const ModelFolder* find_model_folder(std::string_view name) {
    const std::string_view wanted = name == "clip"   ? "text_encoders"
                                    : name == "unet" ? "diffusion_models"
                                                     : name;
    const auto* found = std::ranges::find(kModelFolders, wanted, &ModelFolder::name);
    return found == kModelFolders.end() ? nullptr : found;
}

}  // namespace comfyd::comfy::server
