// Workflows of real ComfyUI classes, for the tests of what looks at workflows.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/catalogue/test_catalogue.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::workflow::test {

inline json::object parsed(std::string_view text) {
    return *json::parse_object(text);
}

// The classes of a recorded ComfyUI, with a few model files where it had none.
inline const Catalogue& recorded_catalogue() {
    static const Catalogue catalogue = [] {
        json::value info = *json::parse(read_test_data("comfyui/object_info.facts.json"));
        json::object& classes = info.as_object();
        const auto offer = [&](const char* class_type, const char* input, json::array files) {
            json::object& required = classes.at(class_type).at("input").at("required").as_object();
            json::array config;
            config.emplace_back(std::move(files));
            required[input] = std::move(config);
        };
        offer(
            "CheckpointLoaderSimple",
            "ckpt_name",
            {"sd15/v1-5-pruned.safetensors", "sd_xl_base_1.0.safetensors"}
        );
        offer("LoraLoader", "lora_name", {"detail.safetensors", "style/ink.safetensors"});
        offer("UNETLoader", "unet_name", {"flux1-dev-fp8.safetensors"});
        offer("VAELoader", "vae_name", {"ae.safetensors"});
        return Catalogue({{"worker", *NodeClasses::from_object_info(info)}});
    }();
    return catalogue;
}

inline json::object text_to_image() {
    return parsed(R"({
        "3": {"class_type": "KSampler", "inputs": {"seed": 5, "steps": 20, "cfg": 8.0,
              "sampler_name": "euler", "scheduler": "normal", "denoise": 1.0, "model": ["4", 0],
              "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["5", 0]}},
        "4": {"class_type": "CheckpointLoaderSimple",
              "inputs": {"ckpt_name": "sd15/v1-5-pruned.safetensors"}},
        "5": {"class_type": "EmptyLatentImage",
              "inputs": {"width": 512, "height": 768, "batch_size": 2}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a cat", "clip": ["4", 1]},
              "_meta": {"title": "Subject"}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["4", 1]}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage",
              "inputs": {"images": ["8", 0], "filename_prefix": "ComfyUI"}}
    })");
}

// Flux as its makers' example has it: guider, noise and scheduler are nodes of their own.
inline json::object flux() {
    return parsed(R"({
        "unet": {"class_type": "UNETLoader",
                 "inputs": {"unet_name": "flux1-dev-fp8.safetensors", "weight_dtype": "default"}},
        "lora": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["unet", 0],
                 "lora_name": "detail.safetensors", "strength_model": 1.0}},
        "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a fox", "clip": ["clip", 0]}},
        "clip": {"class_type": "DualCLIPLoader", "inputs": {"clip_name1": "t5xxl_fp16.safetensors",
                 "clip_name2": "clip_l.safetensors", "type": "flux"}},
        "guide": {"class_type": "FluxGuidance",
                  "inputs": {"guidance": 3.5, "conditioning": ["text", 0]}},
        "guider": {"class_type": "BasicGuider",
                   "inputs": {"model": ["lora", 0], "conditioning": ["guide", 0]}},
        "noise": {"class_type": "RandomNoise", "inputs": {"noise_seed": 1}},
        "select": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "euler"}},
        "sigmas": {"class_type": "BasicScheduler", "inputs": {"scheduler": "simple", "steps": 28,
                   "denoise": 1.0, "model": ["lora", 0]}},
        "latent": {"class_type": "EmptySD3LatentImage",
                   "inputs": {"width": 1024, "height": 1024, "batch_size": 1}},
        "sample": {"class_type": "SamplerCustomAdvanced", "inputs": {"noise": ["noise", 0],
                   "guider": ["guider", 0], "sampler": ["select", 0], "sigmas": ["sigmas", 0],
                   "latent_image": ["latent", 0]}},
        "vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}},
        "decode": {"class_type": "VAEDecode",
                   "inputs": {"samples": ["sample", 0], "vae": ["vae", 0]}},
        "save": {"class_type": "SaveImage",
                 "inputs": {"images": ["decode", 0], "filename_prefix": "flux"}}
    })");
}

inline json::value& input(json::object& workflow, const char* node, const char* name) {
    return workflow.at(node).as_object().at("inputs").as_object()[name];
}

}  // namespace comfyd::workflow::test
