#include "workflow/files/named_files.hpp"

#include <gtest/gtest.h>

#include "workflow/files/private_names.hpp"
#include "workflow/rules/check.hpp"
#include "workflow/rules/stages.hpp"
#include "workflow/rules/stages_test_support.hpp"

namespace comfyd::workflow {
namespace {

using test::recorded_catalogue;

json::object node(const char* class_type, const char* input, json::value value) {
    json::object inputs;
    inputs[input] = std::move(value);
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}

json::object shown(json::value image) {
    json::object graph;
    graph["1"] = node("LoadImage", "image", std::move(image));
    graph["2"] = node("PreviewImage", "images", json::array{"1", 0});
    return graph;
}

TEST(NamedFiles, AnnotationsAreReadAsComfyUIReadsThem) {
    const auto split = [](std::string name) {
        std::string folder = "input";
        split_annotation(name, folder);
        return name + " in " + folder;
    };
    EXPECT_EQ(split("a.png"), "a.png in input");
    EXPECT_EQ(split("sub/a.png [output]"), "sub/a.png in output");
    EXPECT_EQ(split("a.png [temp]"), "a.png in temp");
    EXPECT_EQ(split("a.png#[temp]"), "a.png in temp");
    EXPECT_EQ(split("a.png [input]"), "a.png in input");
    EXPECT_EQ(split("[output]"), " in output");
    EXPECT_EQ(split("a.png [other]"), "a.png [other] in input");
}

TEST(NamedFiles, AreFoundInEveryClassAndAtAnyDepth) {
    const std::string secret = private_folder("secret", "red") + "/x.png";
    json::object graph;
    graph["1"] = node("LoadImage", "image", "cat.png");
    graph["2"] = node("LoadImageOutput", "image", "x_00001_.png [output]");
    graph["3"] = node("Unknown", "anything", json::object{{"deep", {{"er", {1, "a.png [temp]"}}}}});
    graph["4"] = node("CLIPTextEncode", "text", "a cat.png and a [output]");
    graph["5"] = node("CLIPTextEncode", "text", json::value(secret));
    graph["6"] = node("LoadImage", "image", json::array{"1", 0});
    graph["7"] = node("LoadImage", "image", "https://a.example/cat.png");
    graph["8"] = node("LoadImage", "image", json::object{{"__value__", {"a.png", "b.png"}}});
    std::map<std::string, std::vector<FileUse>> found;
    for (const FileUse& use : find_file_uses(graph, recorded_catalogue())) {
        found[use.node_id].push_back(use);
    }
    ASSERT_EQ(found.size(), 5U);
    EXPECT_TRUE(found["1"].at(0).is_choice);
    EXPECT_FALSE(found["1"].at(0).is_nested);
    EXPECT_EQ(found["1"].at(0).folder, "input");
    EXPECT_EQ(found["2"].at(0).folder, "output");
    EXPECT_EQ(found["2"].at(0).path, "x_00001_.png");
    EXPECT_EQ(found["3"].at(0).folder, "temp");
    EXPECT_TRUE(found["3"].at(0).is_certain);
    EXPECT_FALSE(found["3"].at(0).is_choice);
    EXPECT_EQ(found["5"].at(0).value, secret);
    ASSERT_EQ(found["8"].size(), 2U);
    EXPECT_TRUE(found["8"].at(1).is_nested);

    replace_file(graph, found["8"].at(1), {{"__type", "core/ASSET"}});
    EXPECT_EQ(
        json::serialize(graph.at("8").at("inputs").at("image")),
        R"({"__value__":["a.png",{"__type":"core/ASSET"}]})"
    );
    // What is inside of a reference is no name.
    const auto left = find_file_uses(graph, recorded_catalogue());
    EXPECT_EQ(std::ranges::count(left, "8", &FileUse::node_id), 1);
}

TEST(NamedFiles, WhatIsNoNameIsMissing) {
    for (const json::value& value : {json::value(5), json::value(nullptr), json::value(true)}) {
        const json::object graph = shown(value);
        const auto missing = find_nameless(graph, recorded_catalogue(), true);
        ASSERT_EQ(missing.size(), 1U);
        EXPECT_EQ(missing[0].refusal().exception_type, "AttributeError");
        EXPECT_FALSE(check(graph, recorded_catalogue(), {}, missing)) << json::serialize(value);
    }
    const json::object linked = shown(json::array{"3", 0});
    EXPECT_TRUE(find_nameless(linked, recorded_catalogue(), true).empty());
    EXPECT_EQ(find_nameless(linked, recorded_catalogue(), false).size(), 1U);
    EXPECT_TRUE(find_nameless(shown("cat.png"), recorded_catalogue(), false).empty());
}

TEST(NamedFiles, MissingOnesAreRefusedInComfyUIsWords) {
    const json::object graph = shown("nothing.png");
    const std::vector<MissingFile> missing{{"1", "LoadImage", "image", "nothing.png"}};
    const auto checked = check(graph, recorded_catalogue(), {}, missing);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::invalid_workflow);
    const std::string details = json::serialize(checked.error().details);
    EXPECT_NE(details.find("custom_validation_failed"), std::string::npos) << details;
    EXPECT_NE(details.find("Invalid image file: nothing.png"), std::string::npos) << details;
    EXPECT_TRUE(check(graph, recorded_catalogue()));

    ValidationOptions options;
    options.missing_files = missing;
    EXPECT_FALSE(validate(graph, recorded_catalogue(), options).valid());
    EXPECT_TRUE(validate(shown("other.png"), recorded_catalogue(), options).valid());
}

}  // namespace
}  // namespace comfyd::workflow
