// What is kept of shapes is bounded, of one catalogue, and told apart by whatever else has a say.
// What admission does with it: api/admit_shapes_test.cpp.
#include "admission/known_shapes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace comfyd::admission {
namespace {

using CataloguePtr = std::shared_ptr<const workflow::Catalogue>;

CataloguePtr make_catalogue() {
    return std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>());
}

KnownShape needing(const std::string& requirement) {
    return {nullptr, Requirement::decode(requirement), nullptr};
}

TEST(KnownShapes, AreFoundAgain) {
    KnownShapes& shapes = KnownShapes::here(make_catalogue());
    EXPECT_EQ(shapes.find("a"), nullptr);
    shapes.add("a", needing("KSampler"));
    ASSERT_NE(shapes.find("a"), nullptr);
    EXPECT_EQ(shapes.find("a")->requirement.encoded(), "KSampler");
    EXPECT_EQ(shapes.find("b"), nullptr);
}

TEST(KnownShapes, AreThoseOfOneCatalogue) {
    const auto first = make_catalogue();
    KnownShapes::here(first).add("a", needing("KSampler"));
    EXPECT_NE(KnownShapes::here(first).find("a"), nullptr);
    EXPECT_EQ(KnownShapes::here(make_catalogue()).find("a"), nullptr);
    EXPECT_EQ(KnownShapes::here(first).find("a"), nullptr);
}

TEST(KnownShapes, AreABoundedNumberTheLatestUsed) {
    KnownShapes& shapes = KnownShapes::here(make_catalogue());
    shapes.add("used", needing("A"));
    for (std::size_t i = 0; i < 3 * KnownShapes::kShapesMax; ++i) {
        shapes.add("shape " + std::to_string(i), needing("A"));
        ASSERT_LE(shapes.size(), KnownShapes::kShapesMax);
        ASSERT_NE(shapes.find("used"), nullptr);
    }
    EXPECT_EQ(shapes.find("shape 0"), nullptr);
    EXPECT_NE(shapes.find("shape " + std::to_string(3 * KnownShapes::kShapesMax - 1)), nullptr);
    const std::string large(KnownShapes::kKeyBytesMax + 1, 'x');
    shapes.add(large, needing("A"));
    EXPECT_EQ(shapes.find(large), nullptr);
}

TEST(KnownShapes, WhoeverHasASayMakesADifference) {
    const auto catalogue = make_catalogue();
    const json::object graph{{"1", {{"class_type", "A"}, {"inputs", {{"text", "a cat"}}}}}};
    const json::object other{{"1", {{"class_type", "A"}, {"inputs", {{"text", "a dog"}}}}}};
    const auto policy = std::make_shared<const workflow::SecurityPolicy>();
    const auto another = std::make_shared<const workflow::SecurityPolicy>();
    const Requirement in_pool = Requirement().in_pool("fast");
    const std::string key = key_of_shape(graph, *catalogue, policy, {}, true, 0);
    EXPECT_EQ(key_of_shape(other, *catalogue, policy, {}, true, 0), key);
    EXPECT_NE(key_of_shape(graph, *catalogue, another, {}, true, 0), key);
    EXPECT_NE(key_of_shape(graph, *catalogue, policy, in_pool, true, 0), key);
    EXPECT_NE(key_of_shape(graph, *catalogue, policy, {}, false, 0), key);
    EXPECT_NE(key_of_shape(graph, *catalogue, policy, {}, true, 1), key);
}

}  // namespace
}  // namespace comfyd::admission
