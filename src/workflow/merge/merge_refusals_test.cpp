#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/merge/merge_test_support.hpp"

namespace comfyd::workflow {
namespace {

using namespace test;
using testing::HasSubstr;

std::string reason(const json::object& workflow) {
    return why_not_mergeable(workflow, recorded_catalogue()).value_or("none");
}

std::string reason(const std::vector<json::object>& jobs) {
    const auto merged = merge_all(jobs);
    return merged ? "none" : merged.error().message;
}

// text_to_image() with `node` between its text and its sampler.
json::object with_conditioning(std::string_view node) {
    json::object workflow = text_to_image();
    workflow["new"] = parsed(node);
    input(workflow, "3", "positive") = json::array{"new", 0};
    return workflow;
}

TEST(MergeRefusals, NoneForUsualWorkflows) {
    for (const json::object& workflow :
         {text_to_image(), flux(), sdxl(), sd3(), image_to_image(), high_resolution()}) {
        EXPECT_EQ(reason(workflow), "none");
    }
}

TEST(MergeRefusals, ConditioningsThatBelongToOnePicture) {
    json::object control = with_conditioning(R"({"class_type": "ControlNetApply", "inputs": {
        "conditioning": ["6", 0], "control_net": ["net", 0], "image": ["load", 0],
        "strength": 1.0}})");
    control["net"] = parsed(
        R"({"class_type": "ControlNetLoader", "inputs": {"control_net_name": "c.safetensors"}})"
    );
    control["load"] = parsed(R"({"class_type": "LoadImage", "inputs": {"image": "a.png"}})");
    EXPECT_THAT(
        reason(control), HasSubstr("stands before a sampler and is not known to work on a batch")
    );
    EXPECT_THAT(
        reason(with_conditioning(R"({"class_type": "ConditioningSetArea", "inputs": {
            "conditioning": ["6", 0], "width": 64, "height": 64, "x": 0, "y": 0,
            "strength": 1.0}})")),
        HasSubstr("node new (ConditioningSetArea)")
    );
    EXPECT_THAT(
        reason(with_conditioning(R"({"class_type": "ConditioningCombine", "inputs": {
            "conditioning_1": ["6", 0], "conditioning_2": ["7", 0]}})")),
        HasSubstr("node new (ConditioningCombine)")
    );
}

TEST(MergeRefusals, LatentsWithMasksOrPlacesInABatch) {
    json::object workflow = image_to_image();
    workflow["mask"] = parsed(R"({"class_type": "SetLatentNoiseMask", "inputs": {
        "samples": ["5", 0], "mask": ["load", 1]}})");
    input(workflow, "3", "latent_image") = json::array{"mask", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("node mask (SetLatentNoiseMask) stands before"));
    workflow["mask"] = parsed(R"({"class_type": "LatentFromBatch", "inputs": {
        "samples": ["5", 0], "batch_index": 0, "length": 1}})");
    EXPECT_THAT(reason(workflow), HasSubstr("node mask (LatentFromBatch) stands before"));
}

TEST(MergeRefusals, SamplingThatDependsOnTheBatch) {
    json::object workflow = text_to_image();
    input(workflow, "3", "sampler_name") = "dpm_adaptive";
    EXPECT_THAT(reason(workflow), HasSubstr("node 3 (KSampler) uses a sampling method"));
    workflow = flux();
    input(workflow, "select", "sampler_name") = "of_some_pack";
    EXPECT_THAT(reason(workflow), HasSubstr("node select (KSamplerSelect) uses"));
    workflow = flux();
    workflow["noise"] = parsed(R"({"class_type": "DisableNoise", "inputs": {}})");
    EXPECT_THAT(reason(workflow), HasSubstr("node noise (DisableNoise)"));
}

TEST(MergeRefusals, SeedsAndCountsThatAreNotNumbers) {
    json::object workflow = text_to_image();
    workflow["number"] = parsed(R"({"class_type": "PrimitiveInt", "inputs": {"value": 3}})");
    input(workflow, "3", "seed") = json::array{"number", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("has no seed of its own"));
    workflow = text_to_image();
    input(workflow, "3", "seed") = -1;
    EXPECT_THAT(reason(workflow), HasSubstr("has no seed of its own"));
    workflow = text_to_image();
    workflow["number"] = parsed(R"({"class_type": "PrimitiveInt", "inputs": {"value": 3}})");
    input(workflow, "5", "batch_size") = json::array{"number", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("makes a number of pictures that is not known"));
    input(workflow, "5", "batch_size") = 4097;
    EXPECT_THAT(reason(workflow), HasSubstr("makes a number of pictures that is not known"));
}

TEST(MergeRefusals, NodesThatSeeTheWholePrompt) {
    json::object workflow = text_to_image();
    workflow["film"] = parsed(R"({"class_type": "SaveAnimatedWEBP", "inputs": {
        "images": ["8", 0], "filename_prefix": "f", "fps": 6.0, "lossless": true, "quality": 80,
        "method": "default"}})");
    EXPECT_THAT(reason(workflow), HasSubstr("node film (SaveAnimatedWEBP) is given the whole"));
    workflow["film"] = parsed(
        R"({"class_type": "SaveLatent", "inputs": {"samples": ["3", 0], "filename_prefix": "f"}})"
    );
    EXPECT_THAT(reason(workflow), HasSubstr("node film (SaveLatent) is given the whole"));
    workflow["film"] =
        parsed(R"({"class_type": "SaveImageWebsocket", "inputs": {"images": ["8", 0]}})");
    EXPECT_THAT(reason(workflow), HasSubstr("without saying whose they are"));
}

TEST(MergeRefusals, LatentsThatLeaveTheBatch) {
    json::object workflow = text_to_image();
    workflow["cut"] = parsed(R"({"class_type": "LatentFlip", "inputs": {
        "samples": ["3", 0], "flip_method": "x-axis: vertically"}})");
    input(workflow, "8", "samples") = json::array{"cut", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("node cut (LatentFlip) takes latents of a sampler"));
}

TEST(MergeRefusals, WhatIsBroken) {
    EXPECT_THAT(reason(parsed("{}")), HasSubstr("no sampler"));
    json::object workflow = text_to_image();
    workflow.at("6").as_object()["class_type"] = "Nothing";
    EXPECT_THAT(reason(workflow), HasSubstr("node 6 (Nothing) has a class that is not known"));
    workflow = text_to_image();
    input(workflow, "6", "clip") = json::array{"gone", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("has a link that leads nowhere"));
    workflow = text_to_image();
    input(workflow, "6", "clip") = json::array{"8", 0};
    EXPECT_THAT(reason(workflow), HasSubstr("cycle"));
    workflow = text_to_image();
    workflow.at("3").as_object().at("inputs").as_object().erase("latent_image");
    EXPECT_THAT(reason(workflow), HasSubstr("has no latents"));
}

TEST(MergeRefusals, JobsOfDifferentForm) {
    json::object other = text_to_image();
    input(other, "3", "steps") = 21;
    EXPECT_THAT(reason({text_to_image(), other}), HasSubstr("do not have the same samplers"));
    other = text_to_image();
    input(other, "4", "ckpt_name") = "sd_xl_base_1.0.safetensors";
    EXPECT_THAT(reason({text_to_image(), other}), HasSubstr("do not have the same samplers"));
    EXPECT_THAT(reason({text_to_image(), flux()}), HasSubstr("do not have the same samplers"));
}

TEST(MergeRefusals, ModelsThatDependOnATextOfTheJob) {
    // The file of a LoRA comes from a text node: the batch key does not tell such jobs apart.
    std::vector<json::object> jobs(2, sdxl());
    for (json::object& job : jobs) {
        job["name"] = parsed(R"({"class_type": "PrimitiveStringMultiline",
            "inputs": {"value": "detail.safetensors"}})");
        input(job, "lora", "lora_name") = json::array{"name", 0};
    }
    input(jobs[1], "name", "value") = "style/ink.safetensors";
    EXPECT_THAT(reason(jobs), HasSubstr("differs between the jobs in its input 'model'"));
}

TEST(MergeRefusals, TextsOfWhichNoTwoHaveTheSameLength) {
    std::vector<json::object> jobs(2, flux());
    input(jobs[0], "text", "text") = std::string(254, '7');
    input(jobs[1], "text", "text") = std::string(255, '7');
    EXPECT_EQ(reason(jobs), "none");
    input(jobs[0], "text", "text") = std::string(256, '7');
    EXPECT_THAT(reason(jobs), HasSubstr("node text (CLIPTextEncode) has a text that may be"));
    input(jobs[0], "text", "text") = std::string(255, '7');
    EXPECT_EQ(reason(jobs), "none");  // the same text: nothing to join
    jobs.assign(2, text_to_image());
    input(jobs[0], "6", "text") = std::string(5000, '7');
    input(jobs[1], "6", "text") = std::string(400, '7');
    EXPECT_EQ(reason(jobs), "none");
}

TEST(MergeRefusals, TextsOfTheSameLengthThatArePartOfDifferentOnes) {
    std::vector<json::object> jobs(2, sd3());
    for (json::object& job : jobs) {
        input(job, "positive", "clip_l") = std::string(75, '7');
    }
    input(jobs[1], "positive", "t5xxl") = "a dog";
    EXPECT_THAT(
        reason(jobs), HasSubstr("node positive (CLIPTextEncodeSD3) has a text that may be")
    );
}

TEST(MergeRefusals, EncodersWhoseTextsAlwaysDifferInLength) {
    json::object workflow = flux();
    input(workflow, "clip", "type") = "hidream";
    EXPECT_THAT(reason(workflow), HasSubstr("node clip (DualCLIPLoader) loads a text encoder"));
    workflow["clip"] = parsed(R"({"class_type": "CLIPLoader", "inputs": {
        "clip_name": "clip_l.safetensors", "type": "qwen_image"}})");
    EXPECT_THAT(reason(workflow), HasSubstr("node clip (CLIPLoader) loads a text encoder"));
    input(workflow, "clip", "type") = "stable_diffusion";
    EXPECT_EQ(reason(workflow), "none");
}

TEST(MergeRefusals, TooMuch) {
    EXPECT_THAT(reason(std::vector<json::object>{}), HasSubstr("between 1 and 64"));
    EXPECT_EQ(reason(std::vector<json::object>(64, text_to_image())), "none");
    EXPECT_THAT(
        reason(std::vector<json::object>(65, text_to_image())), HasSubstr("between 1 and 64")
    );
    std::vector<json::object> jobs(3, text_to_image());
    for (json::object& job : jobs) {
        input(job, "5", "batch_size") = 2000;
    }
    EXPECT_THAT(reason(jobs), HasSubstr("too many pictures"));
}

}  // namespace
}  // namespace comfyd::workflow
