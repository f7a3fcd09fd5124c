#include "workflow/graph/node_links.hpp"

#include <gtest/gtest.h>

namespace comfyd::workflow {
namespace {

std::string merged(std::string_view workflow) {
    const auto result = merge_links(*json::parse_object(workflow));
    return result ? json::serialize_canonical(*result)
                  : std::string(to_string(result.error().code));
}

TEST(NodeLinks, LeavesOtherShapesAlone) {
    EXPECT_EQ(merged(R"({"1":{"class_type":"A"}})"), R"({"1":{"class_type":"A"}})");
    EXPECT_EQ(merged(R"({"nodes":[],"links":[]})"), R"({"links":[],"nodes":[]})");
    EXPECT_EQ(merged(R"({"nodes":{"class_type":"A"}})"), R"({"nodes":{"class_type":"A"}})");
    EXPECT_EQ(merged("{}"), "{}");
}

TEST(NodeLinks, TakesTheNodesOut) {
    const std::string nodes =
        R"({"1":{"class_type":"A","inputs":{"x":["2",0]}},"2":{"class_type":"B"}})";
    EXPECT_EQ(merged(R"({"nodes":)" + nodes + "}"), nodes);
    EXPECT_EQ(merged(R"({"nodes":)" + nodes + R"(,"links":[]})"), nodes);
    EXPECT_EQ(merged(R"({"nodes":)" + nodes + R"(,"links":{}})"), nodes);
    EXPECT_EQ(merged(R"({"nodes":)" + nodes + R"(,"links":null})"), nodes);
}

TEST(NodeLinks, SetsInputsFromEveryFormOfLink) {
    const std::string expected =
        R"({"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"images":["1",0]}}})";
    const std::string nodes =
        R"({"nodes":{"1":{"class_type":"A"},"2":{"class_type":"B"}},"links":[)";
    for (const char* link : {
             R"(["1",0,"2","images"])",
             R"([1,0,2,"images"])",
             R"({"from":"1","from_slot":0,"to":"2","to_input":"images"})",
             R"({"from":["1",0],"to":["2","images"]})",
             R"({"from_node":1,"from_output":0,"to_node":2,"to_input":"images"})",
             R"({"source":"1","target":"2","target_input":"images"})",
         }) {
        EXPECT_EQ(merged(nodes + link + "]}"), expected) << link;
    }
}

TEST(NodeLinks, AnInputKeepsItsLinkButNotItsValue) {
    EXPECT_EQ(
        merged(
            R"({"nodes":{"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"a":["1",1],"b":3}}},
                   "links":[["1",0,"2","a"],["1",2,"2","b"]]})"
        ),
        R"({"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"a":["1",1],"b":["1",2]}}})"
    );
}

TEST(NodeLinks, ListsEveryLinkThatCannotBeUsed) {
    const auto result = merge_links(*json::parse_object(
        R"({"nodes":{"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{}}},
            "links":[["9",0,"2","a"],["1",0,"9","a"],["1",-1,"2","a"],[7,1,0,2,0,"IMAGE"],"x",["1",0,"2","a"]]})"
    ));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::invalid_workflow);
    const auto& invalid = result.error().details.at("invalid_connections").as_array();
    ASSERT_EQ(invalid.size(), 5U);
    EXPECT_EQ(invalid[0].at("link"), 0U);
    EXPECT_EQ(invalid[0].at("reason"), "there is no node 9");
    EXPECT_TRUE(result.error().details.at("missing_nodes").as_array().empty());
}

TEST(NodeLinks, ARepeatedListInAnotherFormIsIgnored) {
    EXPECT_EQ(
        merged(R"({"nodes":{"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"a":["1",0]}}},
                   "links":[[7,1,0,2,0,"IMAGE"]]})"),
        R"({"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"a":["1",0]}}})"
    );
}

TEST(NodeLinks, LinksMustBeAList) {
    EXPECT_EQ(merged(R"({"nodes":{"1":{}},"links":3})"), "invalid_argument");
    EXPECT_EQ(
        merged(R"({"nodes":{"1":3,"2":{"inputs":4}},"links":[["2",0,"1","a"]]})"),
        "invalid_workflow"
    );
    EXPECT_EQ(
        merged(R"({"nodes":{"1":3,"2":{"inputs":4}},"links":[["1",0,"2","a"]]})"),
        "invalid_workflow"
    );
}

}  // namespace
}  // namespace comfyd::workflow
