#include "admission/profile.hpp"

#include <gtest/gtest.h>

namespace comfyd::admission {
namespace {

std::shared_ptr<const workflow::Catalogue> make_catalogue() {
    const auto info = json::parse(R"({
        "Load": {"input": {"required": {"ckpt_name": [["a.safetensors", "b.safetensors"]]}},
                 "output": ["MODEL"], "output_is_list": [false], "output_name": ["MODEL"], "name": "Load"},
        "Sample": {"input": {"required": {"model": ["MODEL"], "text": ["STRING"], "seed": ["INT"], "steps": ["INT"]}},
                   "output": [], "output_is_list": [], "output_name": [], "name": "Sample", "output_node": true}})"
    );
    return std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>{
        {"w1", *workflow::NodeClasses::from_object_info(*info)}
    });
}

json::object graph(const std::string& model, const std::string& text, int seed, int steps) {
    return {
        {"1", {{"class_type", "Load"}, {"inputs", {{"ckpt_name", model}}}}},
        {"2",
         {{"class_type", "Sample"},
          {"inputs",
           {{"model", json::array{"1", 0}}, {"text", text}, {"seed", seed}, {"steps", steps}}}}},
    };
}

class Profiles : public testing::Test {
protected:
    scheduler::ProfilePtr make(const json::object& workflow) {
        return make_profile(workflow, catalogue_, {}, spec_);
    }

    std::shared_ptr<const workflow::Catalogue> catalogue_ = make_catalogue();
    jobs::Spec spec_;
};

TEST_F(Profiles, TextsAndSeedsMakeNoDifference) {
    const auto first = make(graph("a.safetensors", "a dog", 1, 20));
    ASSERT_TRUE(first);
    ASSERT_EQ(first->models.size(), 1U);
    EXPECT_EQ(first->models[0].name, "checkpoint/a.safetensors");
    EXPECT_EQ(make(graph("a.safetensors", "a cat", 2, 20)), first);
}

TEST_F(Profiles, WhatTheRunDependsOnDoes) {
    const auto first = make(graph("a.safetensors", "a dog", 1, 20));
    EXPECT_NE(make(graph("b.safetensors", "a dog", 1, 20)), first);
    EXPECT_NE(make(graph("a.safetensors", "a dog", 1, 21)), first);
    const auto embedded = make(graph("a.safetensors", "a dog, embedding:soft", 1, 20));
    EXPECT_NE(embedded, first);
    EXPECT_EQ(embedded->models.size(), 2U);
    spec_.targets = {"2"};
    EXPECT_NE(make(graph("a.safetensors", "a dog", 1, 20)), first);
}

TEST_F(Profiles, AnotherFleetIsAskedAnew) {
    const auto first = make(graph("a.safetensors", "a dog", 1, 20));
    catalogue_ = make_catalogue();
    EXPECT_NE(make(graph("a.safetensors", "a dog", 1, 20)), first);
}

TEST_F(Profiles, WithoutModelsThereIsNone) {
    json::object workflow = graph("a.safetensors", "a dog", 1, 20);
    workflow.erase("1");
    EXPECT_EQ(make(workflow), nullptr);
}

}  // namespace
}  // namespace comfyd::admission
