#include "admission/form.hpp"

#include <gtest/gtest.h>

namespace comfyd::admission {
namespace {

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

// A worker that has another class in the place of an old one.
workflow::Catalogue fleet() {
    workflow::ClassNotes notes;
    notes.replacements = parse(R"({"OldMake": [{"new_node_id": "Make",
        "input_mapping": [{"new_id": "size", "old_id": "width"}]}]})");
    const auto info = json::parse(R"({
        "Make": {"input": {"required": {"size": ["INT", {}]}}, "output": ["IMAGE"]},
        "LoadImages": {"input": {"required": {"images": [[], {"image_upload": true}]}}, "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"], "filename_prefix": ["STRING", {}]}},
                 "output": [], "output_node": true}})");
    return workflow::Catalogue({{"w1", *workflow::NodeClasses::from_object_info(*info, notes)}});
}

constexpr const char* kPrompt = R"({
    "1": {"class_type": "OldMake", "inputs": {"width": 5}},
    "2": {"class_type": "Save", "inputs": {"images": ["1", 0],
          "filename_prefix": "comfyd_0123456789abcdef0123456789abcdef/x"}}})";

TEST(Form, OldClassesAndPrivateFoldersAreSettled) {
    const auto form = put_in_form(parse(kPrompt), {}, fleet(), Time{});
    ASSERT_TRUE(form) << form.error().message;
    EXPECT_EQ(form->graph.at("1"), parse(R"({"class_type": "Make", "inputs": {"size": 5}})"));
    EXPECT_EQ(form->graph.at("2").at("inputs").at("filename_prefix"), "x");
    EXPECT_FALSE(form->editor_format);
    json::object prompt = parse(kPrompt);
    settle_nodes(prompt, fleet());
    EXPECT_EQ(prompt, form->graph) << "for ComfyUI's own prompts too";
}

TEST(Form, WhatIsDeclaredBesideTheNodesIsSet) {
    const json::object wrapped = parse(
        R"({"prompt": {"1": {"class_type": "Make", "inputs": {"size": 5}}},
            "parameters": {"how big": {"target": "1.size", "default": 7}}})"
    );
    const auto by_default = put_in_form(wrapped, {}, fleet(), Time{});
    ASSERT_TRUE(by_default) << by_default.error().message;
    EXPECT_EQ(by_default->graph.at("1").at("inputs").at("size"), 7);
    const auto set = put_in_form(wrapped, {{"how big", 9}}, fleet(), Time{});
    ASSERT_TRUE(set);
    EXPECT_EQ(set->graph.at("1").at("inputs").at("size"), 9);
    EXPECT_EQ(set->bound.inputs.size(), 1U);
    EXPECT_FALSE(put_in_form(wrapped, {{"how wide", 9}}, fleet(), Time{}));
}

TEST(Form, TheEditorsFormatIsConvertedWhereThatIsWanted) {
    const json::object saved = parse(R"({"nodes": [
        {"id": 1, "type": "Make", "mode": 0, "inputs": [], "outputs": [{"name": "IMAGE", "type": "IMAGE", "links": []}],
         "widgets_values": [5]}], "links": []})");
    const auto form = put_in_form(saved, {}, fleet(), Time{});
    ASSERT_TRUE(form) << form.error().message;
    EXPECT_EQ(form->graph.at("1").at("inputs").at("size"), 5);
    EXPECT_EQ(form->editor_format, saved);
    for (const bool is_wanted : {false, true}) {
        const auto kept = put_in_form(saved, {}, workflow::Catalogue({}), Time{}, is_wanted);
        ASSERT_TRUE(kept);
        EXPECT_EQ(kept->graph, saved) << "no class is known";
    }
    const auto unwanted = put_in_form(saved, {}, fleet(), Time{}, false);
    ASSERT_TRUE(unwanted);
    EXPECT_EQ(unwanted->graph, saved);
}

}  // namespace
}  // namespace comfyd::admission
