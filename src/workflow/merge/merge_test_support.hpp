// Workflows that can be merged, and the way back: one job's workflow out of a merged prompt.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "workflow/merge/merge.hpp"
#include "workflow/plan/plan.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow::test {

inline Result<Merged> merge_all(const std::vector<json::object>& workflows) {
    std::vector<MergeInput> inputs;
    for (const json::object& workflow : workflows) {
        inputs.push_back({&workflow, nullptr});
    }
    return merge(inputs, recorded_catalogue());
}

// The same text for both encoders of SDXL, as most workflows have it.
inline json::object sdxl() {
    return parsed(R"({
        "base": {"class_type": "CheckpointLoaderSimple",
                 "inputs": {"ckpt_name": "sd_xl_base_1.0.safetensors"}},
        "lora": {"class_type": "LoraLoader", "inputs": {"model": ["base", 0], "clip": ["base", 1],
                 "lora_name": "style/ink.safetensors", "strength_model": 0.8,
                 "strength_clip": 0.8}},
        "skip": {"class_type": "CLIPSetLastLayer",
                 "inputs": {"clip": ["lora", 1], "stop_at_clip_layer": -2}},
        "positive": {"class_type": "CLIPTextEncodeSDXL", "inputs": {"clip": ["skip", 0],
                     "width": 1024, "height": 1024, "crop_w": 0, "crop_h": 0,
                     "target_width": 1024, "target_height": 1024,
                     "text_g": "a cat", "text_l": "a cat"}},
        "negative": {"class_type": "CLIPTextEncode",
                     "inputs": {"clip": ["skip", 0], "text": "blurry"}},
        "latent": {"class_type": "EmptyLatentImage",
                   "inputs": {"width": 1024, "height": 1024, "batch_size": 1}},
        "sample": {"class_type": "KSamplerAdvanced", "inputs": {"add_noise": "enable",
                   "noise_seed": 5, "steps": 20, "cfg": 7.0, "sampler_name": "dpmpp_2m_sde",
                   "scheduler": "karras", "start_at_step": 0, "end_at_step": 10000,
                   "return_with_leftover_noise": "disable", "model": ["lora", 0],
                   "positive": ["positive", 0], "negative": ["negative", 0],
                   "latent_image": ["latent", 0]}},
        "decode": {"class_type": "VAEDecode",
                   "inputs": {"samples": ["sample", 0], "vae": ["base", 2]}},
        "save": {"class_type": "SaveImage",
                 "inputs": {"images": ["decode", 0], "filename_prefix": "xl"}}
    })");
}

inline json::object sd3() {
    return parsed(R"({
        "base": {"class_type": "CheckpointLoaderSimple",
                 "inputs": {"ckpt_name": "sd15/v1-5-pruned.safetensors"}},
        "clip": {"class_type": "TripleCLIPLoader", "inputs": {"clip_name1": "clip_g.safetensors",
                 "clip_name2": "clip_l.safetensors", "clip_name3": "t5xxl_fp16.safetensors"}},
        "shift": {"class_type": "ModelSamplingSD3",
                  "inputs": {"model": ["base", 0], "shift": 3.0}},
        "positive": {"class_type": "CLIPTextEncodeSD3", "inputs": {"clip": ["clip", 0],
                     "clip_l": "a cat", "clip_g": "a cat", "t5xxl": "a cat",
                     "empty_padding": "none"}},
        "negative": {"class_type": "ConditioningZeroOut",
                     "inputs": {"conditioning": ["positive", 0]}},
        "latent": {"class_type": "EmptySD3LatentImage",
                   "inputs": {"width": 1024, "height": 1024, "batch_size": 1}},
        "method": {"class_type": "KSamplerSelect", "inputs": {"sampler_name": "dpmpp_2m"}},
        "sigmas": {"class_type": "BasicScheduler", "inputs": {"scheduler": "sgm_uniform",
                   "steps": 28, "denoise": 1.0, "model": ["shift", 0]}},
        "sample": {"class_type": "SamplerCustom", "inputs": {"add_noise": true, "noise_seed": 5,
                   "cfg": 4.5, "model": ["shift", 0], "positive": ["positive", 0],
                   "negative": ["negative", 0], "sampler": ["method", 0],
                   "sigmas": ["sigmas", 0], "latent_image": ["latent", 0]}},
        "decode": {"class_type": "VAEDecode",
                   "inputs": {"samples": ["sample", 0], "vae": ["base", 2]}},
        "save": {"class_type": "SaveImage",
                 "inputs": {"images": ["decode", 0], "filename_prefix": "sd3"}}
    })");
}

inline json::object image_to_image() {
    json::object workflow = text_to_image();
    workflow["load"] = parsed(R"({"class_type": "LoadImage", "inputs": {"image": "a.png"}})");
    workflow["size"] = parsed(R"({"class_type": "ImageScale", "inputs": {"image": ["load", 0],
        "upscale_method": "area", "width": 512, "height": 512, "crop": "center"}})");
    workflow["5"] =
        parsed(R"({"class_type": "VAEEncode", "inputs": {"pixels": ["size", 0], "vae": ["4", 2]}})"
        );
    input(workflow, "3", "denoise") = 0.6;
    return workflow;
}

// A second sampling of the enlarged latents.
inline json::object high_resolution() {
    json::object workflow = text_to_image();
    workflow["larger"] = parsed(R"({"class_type": "LatentUpscaleBy", "inputs": {
        "samples": ["3", 0], "upscale_method": "nearest-exact", "scale_by": 1.5}})");
    workflow["again"] = json::value(workflow.at("3"));
    input(workflow, "again", "latent_image") = json::array{"larger", 0};
    input(workflow, "again", "denoise") = 0.5;
    input(workflow, "8", "samples") = json::array{"again", 0};
    return workflow;
}

// What one job of a merged prompt runs, as a workflow of its own: joining and splitting nodes are
// gone, and the seed is a number again.
class Unmerged {
public:
    Unmerged(const Merged& merged, std::size_t job) : merged_(merged), job_(job) {
        std::vector<std::string> open;
        for (const auto& [id, origins] : merged.origins) {
            const bool saves = merged.prompt.at(id).at("class_type") == "ComfydSaveImage";
            if (saves && origins.at(0).job == job) {
                open.push_back(id);
            }
        }
        while (!open.empty()) {
            const std::string id = std::move(open.back());
            open.pop_back();
            if (!workflow_.contains(id)) {
                workflow_[id] = copy(id, open);
            }
        }
    }

    const json::object& workflow() const { return workflow_; }

private:
    json::object copy(const std::string& id, std::vector<std::string>& open) {
        run_place_ = place_in_run(id);
        json::object node = merged_.prompt.at(id).as_object();
        json::object& inputs = node.at("inputs").as_object();
        if (node.at("class_type") == "ComfydSaveImage") {
            const bool preview = inputs.at("preview").as_bool();
            node.at("class_type") = preview ? "PreviewImage" : "SaveImage";
            for (const char* added : {"prompt", "extra_pnginfo", "preview"}) {
                inputs.erase(added);
            }
        }
        for (auto& [name, value] : inputs) {
            value = resolved(std::move(value));
            if (value.is_array()) {
                open.emplace_back(value.as_array()[0].as_string());
            }
        }
        return node;
    }

    // Which of the jobs that share the node it is.
    std::size_t place_in_run(const std::string& id) const {
        std::vector<std::size_t> sharing;
        for (const JobNode& origin : merged_.origins.at(id)) {
            if (std::ranges::find(sharing, origin.job) == sharing.end()) {
                sharing.push_back(origin.job);
            }
        }
        return static_cast<std::size_t>(std::ranges::find(sharing, job_) - sharing.begin());
    }

    json::value resolved(json::value value) const {
        while (value.is_array()) {
            const std::string id(value.as_array()[0].as_string());
            const json::object& node = merged_.prompt.at(id).as_object();
            const json::object& inputs = node.at("inputs").as_object();
            if (!merged_.origins.at(id).empty()) {
                return value;
            }
            if (node.at("class_type") == "ImageFromBatch") {
                value = inputs.at("image");
            } else if (node.at("class_type") == "ComfydConditioningBatch") {
                value = inputs.at("conditioning" + std::to_string(run_place_));
            } else if (value.as_array()[1] == 1) {
                return seed(inputs);
            } else {
                const bool is_joined = !inputs.contains("latent1");
                value = inputs.at("latent" + std::to_string(is_joined ? 0 : run_place_));
            }
        }
        return value;
    }

    json::value seed(const json::object& inputs) const {
        std::string jobs(inputs.at("jobs").as_string());
        for (std::size_t i = 0; i < run_place_; ++i) {
            jobs.erase(0, jobs.find(',') + 1);
        }
        return *json::parse(jobs.substr(0, jobs.find(':')));
    }

    const Merged& merged_;
    std::size_t job_;
    std::size_t run_place_ = 0;
    json::object workflow_;
};

inline std::string content_of(const json::object& workflow) {
    return make_plan(Graph(workflow), recorded_catalogue()).fingerprint;
}

}  // namespace comfyd::workflow::test
