#include "workflow/plan/loaders.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"

namespace comfyd::workflow {
namespace {

class Classes final : public PromptClasses {
public:
    Classes() : classes_(*NodeClasses::from_object_info(*json::parse(kInfo))) {}
    const NodeDefinition* find(std::string_view class_type) const override {
        return classes_->find(class_type);
    }

private:
    static constexpr const char* kInfo = R"json({
        "CheckpointLoaderSimple": {"input": {"required": {"ckpt_name": [["a.safetensors"]]}},
            "output": ["MODEL", "CLIP", "VAE"], "output_node": false},
        "LoraLoader": {"input": {"required": {"model": ["MODEL"], "clip": ["CLIP"],
            "lora_name": [["l.safetensors"]]}}, "output": ["MODEL", "CLIP"], "output_node": false},
        "VAELoader": {"input": {"required": {"vae_name": [["v.safetensors"]]}}, "output": ["VAE"],
            "output_node": false},
        "LoadModelOf": {"input": {"required": {"file": [[], {"image_upload": true}]}},
            "output": ["MODEL"], "output_node": false},
        "Trained": {"input": {"required": {"model": ["MODEL"], "latent": ["LATENT"]}},
            "output": ["MODEL"], "output_node": false},
        "CLIPTextEncode": {"input": {"required": {"clip": ["CLIP"], "text": ["STRING"]}},
            "output": ["CONDITIONING"], "output_node": false},
        "EmptyLatentImage": {"input": {"required": {}}, "output": ["LATENT"], "output_node": false},
        "KSampler": {"input": {"required": {"model": ["MODEL"], "positive": ["CONDITIONING"],
            "latent_image": ["LATENT"]}}, "output": ["LATENT"], "output_node": false},
        "VAEDecode": {"input": {"required": {"samples": ["LATENT"], "vae": ["VAE"]}},
            "output": ["IMAGE"], "output_node": false},
        "SaveImage": {"input": {"required": {"images": ["IMAGE"]}}, "output": [],
            "output_node": true}})json";
    std::shared_ptr<const NodeClasses> classes_;
};

json::object loaders(const char* workflow) {
    return loaders_of(*json::parse_object(workflow), Classes());
}

TEST(Loaders, ArePartOfTheWorkflowWithWhatTheRestTakesOfThem) {
    const json::object prompt = loaders(R"({
        "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a.safetensors"},
              "_meta": {"title": "mine"}},
        "2": {"class_type": "LoraLoader", "inputs": {"model": ["1", 0], "clip": ["1", 1],
              "lora_name": "l.safetensors"}},
        "3": {"class_type": "VAELoader", "inputs": {"vae_name": "v.safetensors"}},
        "4": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["2", 1], "text": "secret"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {}},
        "6": {"class_type": "KSampler", "inputs": {"model": ["2", 0], "positive": ["4", 0],
              "latent_image": ["5", 0]}},
        "7": {"class_type": "VAEDecode", "inputs": {"samples": ["6", 0], "vae": ["3", 0]}},
        "8": {"class_type": "SaveImage", "inputs": {"images": ["7", 0]}}})");
    EXPECT_EQ(json::value(prompt), *json::parse(R"({
        "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "a.safetensors"},
              "_meta": {"title": "mine"}},
        "2": {"class_type": "LoraLoader", "inputs": {"model": ["1", 0], "clip": ["1", 1],
              "lora_name": "l.safetensors"}},
        "3": {"class_type": "VAELoader", "inputs": {"vae_name": "v.safetensors"}},
        "comfyd_warm": {"class_type": "ComfydWarm", "inputs": {"loaded0": ["2", 0],
              "loaded1": ["2", 1], "loaded2": ["3", 0]}}})"));
}

TEST(Loaders, WhatNobodyTakesIsNotLoadedAndANodeOfTheSameNameIsNotReplaced) {
    const json::object prompt = loaders(R"({
        "comfyd_warm": {"class_type": "CheckpointLoaderSimple",
                        "inputs": {"ckpt_name": "a.safetensors"}},
        "3": {"class_type": "VAELoader", "inputs": {"vae_name": "v.safetensors"}},
        "4": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["comfyd_warm", 1]}}})");
    EXPECT_EQ(prompt.size(), 2U);
    EXPECT_TRUE(prompt.contains("comfyd_warm"));
    EXPECT_EQ(
        prompt.at("comfyd_warm_").at("inputs"), *json::parse(R"({"loaded0": ["comfyd_warm", 1]})")
    );
}

TEST(Loaders, WhatNeedsMoreThanModelsOrAFileOfAClientIsLeftOut) {
    EXPECT_TRUE(loaders(R"({
        "1": {"class_type": "LoadModelOf", "inputs": {"file": "theirs.safetensors"}},
        "2": {"class_type": "EmptyLatentImage", "inputs": {}},
        "3": {"class_type": "Trained", "inputs": {"model": ["1", 0], "latent": ["2", 0]}},
        "4": {"class_type": "KSampler", "inputs": {"model": ["3", 0], "latent_image": ["2", 0]}}})")
                    .empty());
}

TEST(Loaders, WhatIsNoWorkflowHasNone) {
    for (const char* text :
         {"{}",
          R"({"1": 5, "2": {"class_type": 7}, "3": {"inputs": []}})",
          R"({"1": {"class_type": "Unknown", "inputs": {"a": ["1", 0]}}})",
          R"({"1": {"class_type": "LoraLoader", "inputs": {"model": ["2", 0], "clip": ["9", 1]}},
              "2": {"class_type": "LoraLoader", "inputs": {"model": ["1", 0], "clip": ["1", 1]}},
              "3": {"class_type": "KSampler", "inputs": {"model": ["2", 0]}}})"}) {
        EXPECT_TRUE(loaders(text).empty()) << text;
    }
}

TEST(Loaders, NoMoreThanTheNodeOfThePackTakes) {
    json::object workflow;
    for (int i = 0; i < 40; ++i) {
        const std::string number = std::to_string(i);
        workflow["v" + number] =
            *json::parse(R"({"class_type": "VAELoader", "inputs": {"vae_name": "v.safetensors"}})");
        workflow["d" + number] = json::object{
            {"class_type", "VAEDecode"}, {"inputs", {{"vae", json::array{"v" + number, 0}}}}
        };
    }
    const json::object prompt = loaders_of(workflow, Classes());
    EXPECT_EQ(prompt.size(), 33U);
    EXPECT_EQ(prompt.at("comfyd_warm").at("inputs").as_object().size(), 32U);
}

}  // namespace
}  // namespace comfyd::workflow
