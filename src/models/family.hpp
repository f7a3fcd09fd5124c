// What kind of model a file holds and for which family of models it is made, as far as the names
// and shapes of its tensors tell. The same signs that ComfyUI goes by, a small table of them: what
// is not in it is not known, and nothing is guessed from a file's name.
//
// A value; one owner.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

namespace comfyd::models {

struct Family {
    // "checkpoint", "diffusion_model", "lora", "controlnet", "vae", "text_encoder", "clip_vision",
    // "upscale_model"; empty: not known.
    std::string_view kind{};
    // "sd15", "sd2", "sdxl", "sdxl-refiner", "sd3", "flux", …; of a text encoder its own name;
    // empty: not known.
    std::string_view name{};

    friend bool operator==(const Family&, const Family&) = default;
};

class FamilySigns {
public:
    // Each tensor once, in any order.
    void see(std::string_view tensor, const std::vector<std::uint64_t>& shape);
    Family judge() const;

    enum class Sign : std::uint8_t {
        checkpoint_unet,  // "model.diffusion_model." beside a text encoder or a VAE
        text_inside,
        vae_inside,
        unet,
        unet_layer_4,  // attention already in its second block: SDXL, or a refiner
        joint_blocks,
        double_blocks,
        guided,  // Flux dev
        chroma,
        hunyuan_video,
        wan,
        ltxv,
        qwen_image,
        pixart,
        lora,
        lora_te2,
        lora_flux,
        lora_sd3,
        lora_wan,
        lora_hunyuan,
        controlnet,
        vae,
        vae_wide,
        clip,
        clip_g,
        t5,
        clip_vision,
        upscale,
        count_,
    };

private:
    bool has(Sign sign) const { return signs_[static_cast<std::size_t>(sign)]; }
    std::string_view unet_name() const;
    std::string_view transformer_name() const;
    std::string_view lora_name() const;

    std::bitset<static_cast<std::size_t>(Sign::count_)> signs_;
    std::uint64_t context_ = 0;  // width of the text that the model is told
};

// A file of this kind is of no use in this folder of ComfyUI's. Of kinds and folders that are not
// known nothing is said.
bool is_misplaced(std::string_view kind, std::string_view folder);

// What changes the weights of the one family has no part that would fit into the other. Of families
// that are not known, or that cannot be told apart for certain, nothing is said.
bool is_of_other_family(std::string_view lora, std::string_view model);

}  // namespace comfyd::models
