// A workflow whose shape is known to be good is not judged again; whatever else could make it bad
// is looked at.
#include "admission/good_shapes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "admission/judge.hpp"

namespace comfyd::admission {
namespace {

using CataloguePtr = std::shared_ptr<const workflow::Catalogue>;

CataloguePtr catalogue_with(const std::string& choices) {
    const auto info = json::parse(
        R"({"Load": {"input": {"required": {"name": [)" + choices +
        R"(]}}, "output": ["MODEL"], "output_is_list": [false], "output_name": ["MODEL"], "name": "Load"},
        "Sample": {"input": {"required": {"model": ["MODEL"], "text": ["STRING"], "seed": ["INT", {"min": 0, "max": 100}]}},
                   "output": [], "output_is_list": [], "output_name": [], "name": "Sample", "output_node": true}})"
    );
    return std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>{
        {"w1", *workflow::NodeClasses::from_object_info(*info)}
    });
}

json::object graph(const std::string& name, json::value text, json::value seed) {
    return {
        {"1", {{"class_type", "Load"}, {"inputs", {{"name", name}}}}},
        {"2",
         {{"class_type", "Sample"},
          {"inputs", {{"model", json::array{"1", 0}}, {"text", text}, {"seed", seed}}}}},
    };
}

bool is_accepted(
    json::object workflow,
    const CataloguePtr& catalogue,
    const std::vector<workflow::MissingFile>& missing = {}
) {
    return judge_nodes(workflow, catalogue, Submission{}, missing).has_value();
}

TEST(GoodShapes, AnotherTextOrSeedIsGoodToo) {
    const auto catalogue = catalogue_with(R"(["a", "b"])");
    EXPECT_TRUE(is_accepted(graph("a", "cat", 1), catalogue));
    EXPECT_EQ(GoodShapes::here(catalogue).size(), 1U);
    EXPECT_TRUE(is_accepted(graph("a", "dog", 2), catalogue));
    EXPECT_EQ(GoodShapes::here(catalogue).size(), 1U);
    EXPECT_TRUE(is_accepted(graph("b", "dog", 2), catalogue));
    EXPECT_EQ(GoodShapes::here(catalogue).size(), 2U);
}

TEST(GoodShapes, WhatIsBadIsToldEachTime) {
    const auto catalogue = catalogue_with(R"(["a", "b"])");
    EXPECT_TRUE(is_accepted(graph("a", "cat", 1), catalogue));
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(is_accepted(graph("c", "cat", 1), catalogue));
        EXPECT_FALSE(is_accepted(graph("a", "cat", -1), catalogue));
        EXPECT_FALSE(is_accepted(graph("a", "cat", 101), catalogue));
        EXPECT_FALSE(is_accepted(graph("a", "cat", json::object()), catalogue));
        EXPECT_FALSE(is_accepted(graph("a", json::array{"1", 0}, 1), catalogue));
    }
    EXPECT_EQ(GoodShapes::here(catalogue).size(), 1U);
}

TEST(GoodShapes, AreThoseOfOneCatalogue) {
    const auto first = catalogue_with(R"(["a"])");
    EXPECT_TRUE(is_accepted(graph("a", "cat", 1), first));
    EXPECT_FALSE(is_accepted(graph("a", "cat", 1), catalogue_with(R"(["b"])")));
    EXPECT_TRUE(is_accepted(graph("a", "cat", 1), first));
}

TEST(GoodShapes, AMissingFileIsToldThoughTheShapeIsGood) {
    const auto catalogue = catalogue_with(R"(["a"], {"image_upload": true})");
    const json::object workflow = graph("a", "cat", 1);
    EXPECT_TRUE(is_accepted(workflow, catalogue));
    const std::vector<workflow::MissingFile> missing{{"1", "Load", "name", "a"}};
    EXPECT_FALSE(is_accepted(workflow, catalogue, missing));
    EXPECT_TRUE(is_accepted(workflow, catalogue));
}

TEST(GoodShapes, AreABoundedNumber) {
    const auto catalogue = catalogue_with(R"(["a"])");
    GoodShapes& shapes = GoodShapes::here(catalogue);
    for (std::size_t i = 0; i < 3 * GoodShapes::kShapesMax; ++i) {
        shapes.add("shape " + std::to_string(i));
        ASSERT_LE(shapes.size(), GoodShapes::kShapesMax);
    }
    EXPECT_FALSE(shapes.contains("shape 0"));
    EXPECT_TRUE(shapes.contains("shape " + std::to_string(3 * GoodShapes::kShapesMax - 1)));
    const std::string large(GoodShapes::kShapeBytesMax + 1, 'x');
    shapes.add(large);
    EXPECT_FALSE(shapes.contains(large));
}

}  // namespace
}  // namespace comfyd::admission
