#include "workflow/catalogue/definition.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/test_catalogue.hpp"

namespace comfyd::workflow {
namespace {

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

std::shared_ptr<const NodeDefinition> define(std::string_view info) {
    auto made = NodeDefinition::from_object_info("Node", parse(info));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return made ? *made : nullptr;
}

std::vector<std::string> names(const InputList& inputs) {
    std::vector<std::string> listed;
    for (const InputDefinition& input : inputs) {
        listed.push_back((input.need == Need::required ? "" : "?") + input.name);
    }
    return listed;
}

using Names = std::vector<std::string>;

constexpr const char* kResize = R"({"input": {
    "optional": {"mask": ["MASK"]},
    "required": {
        "image": ["IMAGE", {"lazy": true}],
        "mode": ["COMFY_DYNAMICCOMBO_V3", {"options": [
            {"key": "by", "inputs": {"required": {"factor": ["FLOAT", {"min": 0}]}}},
            {"key": "codec", "inputs": {
                "required": {"codec": ["COMFY_DYNAMICCOMBO_V3", {"options": [
                    {"key": "h264", "inputs": {"required": {"crf": ["INT"]}}},
                    {"key": "raw", "inputs": {"required": {}}}]}]},
                "optional": {"note": ["STRING"]}}}]}],
        "parts": ["COMFY_AUTOGROW_V3", {"template": {
            "input": {"required": {"part": ["IMAGE", {}]}}, "prefix": "part", "min": 1, "max": 3}}],
        "more": ["COMFY_AUTOGROW_V3", {"template": {
            "input": {"optional": {"x": ["INT,FLOAT"]}}, "names": ["a", "b"], "min": 2}}]},
    "hidden": {"id": ["UNIQUE_ID"], "prompt": "PROMPT"}},
    "output": ["IMAGE", ["a", "b"]], "output_is_list": [false, true], "output_node": true,
    "is_input_list": true, "dev_only": false, "python_module": "custom_nodes.pack"})";

TEST(Definition, ReadsWhatAClassIs) {
    const auto node = define(kResize);
    EXPECT_EQ(node->name(), "Node");
    EXPECT_TRUE(node->output_node());
    EXPECT_TRUE(node->input_is_list());
    EXPECT_TRUE(node->hides_unique_id());
    EXPECT_TRUE(node->is_v3());
    EXPECT_TRUE(node->is_custom());
    EXPECT_EQ(node->outputs(), (Names{"IMAGE", "COMBO"}));
    EXPECT_EQ(node->output_type(1), (json::array{"a", "b"}));
    EXPECT_FALSE(node->output_is_list(0));
    EXPECT_TRUE(node->output_is_list(1));
    EXPECT_FALSE(node->output_is_list(2));
    EXPECT_EQ(node->info(), parse(kResize));
}

TEST(Definition, DynamicInputsFollowTheValues) {
    const auto node = define(kResize);
    EXPECT_TRUE(node->has_dynamic_inputs());
    const Names rest{"?mask", "?parts.part1", "?parts.part2", "?more.a", "?more.b"};
    const auto with = [&](Names before, const Names& after) {
        before.insert(before.end(), after.begin(), after.end());
        return before;
    };
    EXPECT_EQ(names(node->inputs_for({})), with({"image", "parts.part0"}, rest));
    EXPECT_EQ(
        names(node->inputs_for({{"mode", "by"}})),
        with({"image", "mode", "mode.factor", "parts.part0"}, rest)
    );
    EXPECT_EQ(
        names(node->inputs_for({{"mode", "codec"}, {"mode.codec", "h264"}})),
        with(
            {"image", "mode", "mode.codec", "mode.codec.crf", "parts.part0"},
            {"?mask", "?mode.note", "?parts.part1", "?parts.part2", "?more.a", "?more.b"}
        )
    );
    for (const json::value& unknown :
         {json::value("other"), json::value(), json::value(json::object())}) {
        EXPECT_EQ(
            names(node->inputs_for({{"mode", unknown}})), with({"image", "parts.part0"}, rest)
        );
    }
}

TEST(Definition, InputsAreFoundByTheirFlatName) {
    const auto node = define(kResize);
    EXPECT_EQ(node->find_input("mode.factor", {}), nullptr);
    const json::object values{{"mode", "by"}};
    const InputDefinition* factor = node->find_input("mode.factor", values);
    ASSERT_NE(factor, nullptr);
    EXPECT_EQ(factor->type, "FLOAT");
    EXPECT_TRUE(factor->nested);
    EXPECT_EQ(factor->options->at("min"), 0);
    EXPECT_TRUE(node->find_input("image", {})->lazy);
    EXPECT_EQ(node->find_input("more.b", {})->type, "INT,FLOAT");
}

TEST(Definition, SlotsBringTheirInputsOnceTheyAreUsed) {
    const auto node = define(R"({"input": {"optional": {"slot": ["COMFY_DYNAMICSLOT_V3",
        {"inputs": {"required": {"strength": ["FLOAT"]}}}]}}})");
    EXPECT_TRUE(node->inputs_for({}).empty());
    EXPECT_EQ(
        names(node->inputs_for({{"slot", json::array{"1", 0}}})), (Names{"slot.strength", "?slot"})
    );
}

TEST(Definition, BothWaysToWriteAChoice) {
    const auto node = define(R"({"input": {"required": {
        "old": [["a", "b", 3], {"image_upload": true}],
        "new": ["COMBO", {"options": ["c"]}],
        "remote": ["COMBO", {"remote": {"route": "/x"}}]}}})");
    const InputDefinition& old = *node->find_input("old", {});
    EXPECT_EQ(old.type, "COMBO");
    EXPECT_TRUE(old.combo_v1);
    EXPECT_TRUE(old.takes_upload());
    EXPECT_TRUE(old.offers("a"));
    EXPECT_TRUE(old.offers(3.0));
    EXPECT_FALSE(old.offers("3"));
    const InputDefinition& fresh = *node->find_input("new", {});
    EXPECT_FALSE(fresh.combo_v1);
    EXPECT_FALSE(fresh.takes_upload());
    EXPECT_TRUE(fresh.offers("c"));
    EXPECT_EQ(node->find_input("remote", {})->choices, nullptr);
    EXPECT_FALSE(node->find_input("remote", {})->offers("c"));
}

TEST(Definition, LongListsOfChoicesAreIndexed) {
    json::array choices;
    for (int i = 0; i < 1000; ++i) {
        choices.emplace_back("model " + std::to_string(i));
    }
    choices.emplace_back(7);
    json::array config;
    config.push_back(std::move(choices));
    json::object info;
    info["input"] = {{"required", {{"model", config}}}};
    const auto made = NodeDefinition::from_object_info("Node", info);
    ASSERT_TRUE(made);
    const InputDefinition& model = *(*made)->find_input("model", {});
    EXPECT_NE(model.choice_index, nullptr);
    EXPECT_TRUE(model.offers("model 999"));
    EXPECT_TRUE(model.offers(7));
    EXPECT_FALSE(model.offers("model 1000"));
    EXPECT_FALSE(model.offers("7"));
}

TEST(Definition, WhatIsNotUnderstoodTakesAnything) {
    const auto node = define(R"({"input": {"required": {
        "text": "STRING", "none": [], "odd": [{"a": 1}], "flat": ["INT", "x"], "null": null}},
        "output": [5], "output_is_list": 3, "output_node": "yes"})");
    EXPECT_EQ(node->inputs_for({}).size(), 5U);
    EXPECT_EQ(node->find_input("text", {})->type, "*");
    EXPECT_EQ(node->find_input("odd", {})->type, "*");
    EXPECT_EQ(node->find_input("flat", {})->type, "INT");
    EXPECT_EQ(node->find_input("flat", {})->options, nullptr);
    EXPECT_EQ(node->outputs(), Names{"*"});
    EXPECT_FALSE(node->output_node());
    EXPECT_FALSE(define(R"({})")->output_is_list(0));
}

TEST(Definition, RefusesOtherForms) {
    for (const char* info : {
             R"({"input": 5})",
             R"({"input": {"required": []}})",
             R"({"output": {}})",
             R"({"input": {"required": {"a": ["COMFY_AUTOGROW_V3", {}]}}})",
             R"({"input": {"required": {"a": ["COMFY_AUTOGROW_V3", {"template": {
                 "input": {"required": {}}, "prefix": "x", "max": 2}}]}}})",
             R"({"input": {"required": {"a": ["COMFY_AUTOGROW_V3", {"template": {
                 "input": {"required": {"y": ["INT"]}}, "prefix": "x", "max": 1000000000}}]}}})",
             R"({"input": {"required": {"a": ["COMFY_AUTOGROW_V3", {"template": {
                 "input": {"required": {"y": ["INT"]}}, "names": [1]}}]}}})",
             R"({"input": {"required": {"a": ["COMFY_DYNAMICCOMBO_V3", {"options": [5]}]}}})",
         }) {
        const auto made = NodeDefinition::from_object_info("Node", parse(info));
        ASSERT_FALSE(made) << info;
        EXPECT_EQ(made.error().code, Code::protocol_error);
        EXPECT_NE(made.error().message.find("Node"), std::string::npos);
    }
}

TEST(Definition, IsBoundedInDepthAndSize) {
    json::value config = json::array{"INT"};
    for (int depth = 0; depth < 30; ++depth) {
        json::object option;
        option["key"] = "k";
        option["inputs"] = {{"required", {{"deeper", config}}}};
        config = json::array{"COMFY_DYNAMICCOMBO_V3", {{"options", json::array{option}}}};
    }
    EXPECT_FALSE(
        NodeDefinition::from_object_info("Node", {{"input", {{"required", {{"a", config}}}}}})
    );
    // 900 of 900 of 900
    config = json::array{"INT"};
    for (int level = 0; level < 3; ++level) {
        json::object form;
        form["input"] = {{"required", {{"x", config}}}};
        form["prefix"] = "x";
        form["min"] = 0;
        form["max"] = 900;
        config = json::array{"COMFY_AUTOGROW_V3", {{"template", form}}};
    }
    EXPECT_FALSE(
        NodeDefinition::from_object_info("Node", {{"input", {{"required", {{"a", config}}}}}})
    );
}

TEST(Definition, EveryRecordedClassIsRead) {
    TestClasses classes(read_test_data("comfyui/object_info.facts.json"));
    classes.add(read_test_data("comfyui/object_info.testing-pack.facts.json"));
    const NodeDefinition* save = classes.find("SaveVideo");
    ASSERT_NE(save, nullptr);
    const json::object values{
        {"format", "mp4"}, {"format.codec", "h264"}, {"format.codec.encoding", "re-encode"}
    };
    EXPECT_EQ(save->find_input("format.codec.encoding.crf", values)->type, "FLOAT");
    EXPECT_EQ(classes.find("KSampler")->find_input("seed", {})->need, Need::required);
    EXPECT_FALSE(classes.find("KSampler")->is_v3());
}

}  // namespace
}  // namespace comfyd::workflow
