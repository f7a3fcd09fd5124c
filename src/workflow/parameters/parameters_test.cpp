#include "workflow/parameters/parameters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workflow/parameters/parameters_roles.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::flux;
using test::input;
using test::text_to_image;
using testing::HasSubstr;

TEST(ParameterNames, WellKnownOnesAreFoundFromTheSampler) {
    json::object workflow = text_to_image();
    const auto bound = bind_parameters(
        workflow,
        {{"prompt", "a dog"},
         {"negative_prompt", "ugly"},
         {"seed", 7},
         {"steps", 30},
         {"cfg", 4.5},
         {"denoise", 0.5},
         {"sampler", "heun"},
         {"scheduler", "karras"},
         {"width", 640},
         {"height", 640},
         {"batch_size", 4},
         {"checkpoint", "sd_xl_base_1.0.safetensors"}}
    );
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(input(workflow, "6", "text"), "a dog");
    EXPECT_EQ(input(workflow, "7", "text"), "ugly");
    EXPECT_EQ(input(workflow, "3", "seed"), 7);
    EXPECT_EQ(input(workflow, "3", "steps"), 30);
    EXPECT_EQ(input(workflow, "3", "cfg"), 4.5);
    EXPECT_EQ(input(workflow, "3", "denoise"), 0.5);
    EXPECT_EQ(input(workflow, "3", "sampler_name"), "heun");
    EXPECT_EQ(input(workflow, "3", "scheduler"), "karras");
    EXPECT_EQ(input(workflow, "5", "width"), 640);
    EXPECT_EQ(input(workflow, "5", "height"), 640);
    EXPECT_EQ(input(workflow, "5", "batch_size"), 4);
    EXPECT_EQ(input(workflow, "4", "ckpt_name"), "sd_xl_base_1.0.safetensors");
    EXPECT_TRUE(bound->chosen().empty());
}

TEST(ParameterNames, GuiderNoiseAndSchedulerNodesAreFollowed) {
    json::object workflow = flux();
    const auto bound = bind_parameters(
        workflow,
        {{"prompt", "a wolf"},
         {"seed", 9},
         {"steps", 20},
         {"cfg", 2.5},
         {"sampler", "heun"},
         {"width", 768},
         {"checkpoint", "other.safetensors"},
         {"lora", "style/ink.safetensors"}}
    );
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(input(workflow, "text", "text"), "a wolf");
    EXPECT_EQ(input(workflow, "noise", "noise_seed"), 9);
    EXPECT_EQ(input(workflow, "sigmas", "steps"), 20);
    EXPECT_EQ(input(workflow, "guide", "guidance"), 2.5);
    EXPECT_EQ(input(workflow, "select", "sampler_name"), "heun");
    EXPECT_EQ(input(workflow, "latent", "width"), 768);
    EXPECT_EQ(input(workflow, "unet", "unet_name"), "other.safetensors");
    EXPECT_EQ(input(workflow, "lora", "lora_name"), "style/ink.safetensors");
    const auto negative = bind_parameters(workflow, {{"negative_prompt", "x"}});
    ASSERT_FALSE(negative);
    EXPECT_THAT(negative.error().message, HasSubstr("'prompt'"));
}

TEST(ParameterNames, BothSidesOfAControlNetAreKeptApart) {
    json::object workflow = text_to_image();
    workflow["10"] = test::parsed(R"({"class_type": "ControlNetApplyAdvanced", "inputs": {
        "positive": ["6", 0], "negative": ["7", 0], "strength": 1.0}})");
    input(workflow, "3", "positive") = json::array{"10", 0};
    input(workflow, "3", "negative") = json::array{"10", 1};
    ASSERT_TRUE(bind_parameters(workflow, {{"prompt", "P"}, {"negative_prompt", "N"}}));
    EXPECT_EQ(input(workflow, "6", "text"), "P");
    EXPECT_EQ(input(workflow, "7", "text"), "N");
}

TEST(ParameterNames, AZeroedConditioningIsNoNegativePrompt) {
    json::object workflow = text_to_image();
    workflow["10"] = test::parsed(
        R"({"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["6", 0]}})"
    );
    input(workflow, "3", "negative") = json::array{"10", 0};
    EXPECT_FALSE(bind_parameters(workflow, {{"negative_prompt", "N"}}));
    EXPECT_EQ(input(workflow, "6", "text"), "a cat");
}

TEST(ParameterNames, ValuesInNodesOfTheirOwnAreSetThere) {
    json::object workflow = text_to_image();
    workflow["p"] =
        test::parsed(R"({"class_type": "PrimitiveString", "inputs": {"value": "from afar"}})");
    workflow["s"] = test::parsed(R"({"class_type": "PrimitiveInt", "inputs": {"value": 3}})");
    input(workflow, "6", "text") = json::array{"p", 0};
    input(workflow, "3", "seed") = json::array{"s", 0};
    ASSERT_TRUE(bind_parameters(workflow, {{"prompt", "near"}, {"seed", 4}}));
    EXPECT_EQ(input(workflow, "p", "value"), "near");
    EXPECT_EQ(input(workflow, "s", "value"), 4);
    EXPECT_TRUE(input(workflow, "6", "text").is_array());
}

TEST(ParameterNames, TheFirstOfTwoSamplersIsMeant) {
    json::object workflow = text_to_image();
    json::object second = workflow.at("3").as_object();
    second.at("inputs").as_object()["latent_image"] = json::array{"3", 0};
    second.at("inputs").as_object()["steps"] = 10;
    second.at("inputs").as_object()["seed"] = 99;
    workflow["12"] = std::move(second);
    input(workflow, "8", "samples") = json::array{"12", 0};
    ASSERT_TRUE(bind_parameters(workflow, {{"steps", 25}, {"prompt", "P"}, {"width", 64}}));
    EXPECT_EQ(input(workflow, "3", "steps"), 25);
    EXPECT_EQ(input(workflow, "12", "steps"), 10);
    EXPECT_EQ(input(workflow, "6", "text"), "P");
}

TEST(ParameterNames, WhatCouldBeSeveralThingsIsRefused) {
    json::object workflow = text_to_image();
    json::object second = workflow.at("3").as_object();
    second.at("inputs").as_object()["seed"] = 99;
    workflow["12"] = std::move(second);
    const auto bound = bind_parameters(workflow, {{"seed", 1}});
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, Code::invalid_argument);
    EXPECT_THAT(bound.error().message, HasSubstr("3.seed, 12.seed"));
}

TEST(ParameterNames, ImagesAreThoseThatAreLoaded) {
    json::object workflow = text_to_image();
    workflow["20"] = test::parsed(R"({"class_type": "LoadImage", "inputs": {"image": "a.png"}})");
    ASSERT_TRUE(bind_parameters(workflow, {{"image", "b.png"}}));
    EXPECT_EQ(input(workflow, "20", "image"), "b.png");
}

TEST(ParameterNames, TitlesAndClassesNameNodes) {
    json::object workflow = text_to_image();
    ASSERT_TRUE(bind_parameters(workflow, {{"Subject", "by title"}}));
    EXPECT_EQ(input(workflow, "6", "text"), "by title");
    ASSERT_TRUE(bind_parameters(workflow, {{"Subject.text", "both"}, {"KSampler.seed", 3}}));
    EXPECT_EQ(input(workflow, "6", "text"), "both");
    EXPECT_EQ(input(workflow, "3", "seed"), 3);
    const auto several = bind_parameters(workflow, {{"CLIPTextEncode.text", "x"}});
    ASSERT_FALSE(several);
    EXPECT_THAT(several.error().message, HasSubstr("6, 7"));
}

TEST(ParameterNames, DotsInTitlesAndInputsAreFound) {
    json::object workflow = test::parsed(R"({
        "1": {"class_type": "A", "inputs": {"resize_type.multiplier": 2.0},
              "_meta": {"title": "v1.5 size"}}})");
    ASSERT_TRUE(bind_parameters(workflow, {{"v1.5 size.resize_type.multiplier", 3}}));
    EXPECT_EQ(input(workflow, "1", "resize_type.multiplier"), 3);
    ASSERT_TRUE(bind_parameters(workflow, {{"1.resize_type.multiplier", 4}}));
    EXPECT_EQ(input(workflow, "1", "resize_type.multiplier"), 4);
}

TEST(ParameterNames, DeclaredOnesComeFirstAndHaveDefaults) {
    json::object document{{"prompt", text_to_image()}};
    document["parameters"] = test::parsed(R"({
        "prompt": ["6.text", "7.text"],
        "quality": {"node": "3", "input": "steps", "default": 35},
        "bad": {"node": "3"}
    })");
    BindOptions options;
    options.declared = declared_parameters(document);
    ASSERT_NE(options.declared, nullptr);
    json::object workflow = text_to_image();
    const auto bound = bind_parameters(workflow, {{"prompt", "both"}}, options);
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(input(workflow, "6", "text"), "both");
    EXPECT_EQ(input(workflow, "7", "text"), "both");
    EXPECT_EQ(input(workflow, "3", "steps"), 35);
    EXPECT_FALSE(bind_parameters(workflow, {{"bad", 1}}, options));
    ASSERT_TRUE(bind_parameters(workflow, {{"quality", 12}}, options));
    EXPECT_EQ(input(workflow, "3", "steps"), 12);
}

TEST(ParameterNames, ARandomSeedIsChosenOnceAndTold) {
    json::object workflow = text_to_image();
    BindOptions options;
    options.random = [] { return std::uint64_t{1234}; };
    const auto bound = bind_parameters(workflow, {{"seed", "random"}}, options);
    ASSERT_TRUE(bound);
    EXPECT_EQ(input(workflow, "3", "seed"), 1234);
    EXPECT_EQ(json::serialize(bound->chosen()), R"({"seed":1234})");
    bound->forget_chosen(workflow);
    EXPECT_EQ(input(workflow, "3", "seed"), "random");
    ASSERT_TRUE(bind_parameters(workflow, {{"3.seed", "random"}}));
    EXPECT_LT(input(workflow, "3", "seed").to_number<std::uint64_t>(), 1ULL << 53);
    ASSERT_TRUE(bind_parameters(workflow, {{"prompt", "random"}}));
    EXPECT_EQ(input(workflow, "6", "text"), "random");
}

TEST(ParameterNames, WrongOnesChangeNothingAndListTheRightOnes) {
    json::object workflow = text_to_image();
    const auto bound = bind_parameters(workflow, {{"seed", 8}, {"promt", "x"}});
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, Code::invalid_argument);
    EXPECT_THAT(bound.error().message, HasSubstr("'prompt' (is that meant?)"));
    EXPECT_EQ(bound.error().details.at("field"), "promt");
    EXPECT_EQ(workflow, text_to_image());
    EXPECT_THAT(
        bind_parameters(workflow, {{"3.sede", 1}}).error().message, HasSubstr("it has seed, steps")
    );
}

TEST(ParameterNames, LongNamesAndManyOfThemAreRefused) {
    json::object workflow = text_to_image();
    EXPECT_FALSE(bind_parameters(workflow, {{std::string(100'000, '.'), 1}}));
    EXPECT_FALSE(bind_parameters(workflow, {{"", 1}}));
    json::object many;
    for (std::size_t i = 0; i <= kParametersMax; ++i) {
        many["3.seed" + std::to_string(i)] = 1;
    }
    EXPECT_FALSE(bind_parameters(workflow, many));
}

TEST(ParameterNames, CyclesAndOddNodesAreNoTrouble) {
    json::object workflow = test::parsed(R"({
        "1": {"class_type": "KSampler", "inputs": {"positive": ["2", 0], "steps": ["1", 0],
              "seed": ["3", 0], "latent_image": ["1", 0]}},
        "2": {"class_type": "A", "inputs": {"conditioning": ["2", 0], "positive": ["1", 0]}},
        "3": {"class_type": "P", "inputs": {"value": ["3", 0]}},
        "4": 7, "5": {"inputs": []}, "6": {"class_type": 3}
    })");
    for (const Role role : kRoles) {
        EXPECT_FALSE(bind_parameters(workflow, {{std::string(to_string(role)), 1}}))
            << to_string(role);
    }
    EXPECT_FALSE(bind_parameters(workflow, {{"4.x", 1}}));
}

}  // namespace
}  // namespace comfyd::workflow
