#include "workflow/rules/loose_ends.hpp"

#include <gtest/gtest.h>

#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

json::object parse(const char* text) {
    return *json::parse_object(text);
}

Catalogue fleet() {
    return Catalogue(
        {{"w1",
          *NodeClasses::from_object_info(*json::parse(R"({
        "Make": {"input": {"required": {"width": ["INT", {"max": 8}]}}, "output": ["IMAGE"]},
        "Turn": {"input": {"required": {"image": ["IMAGE"]}}, "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}})"
          ))}}
    );
}

constexpr const char* kGood = R"({
    "1": {"class_type": "Make", "inputs": {"width": 1}},
    "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}}})";

// "node.input reason" of each finding of check().
std::vector<std::string> findings(const json::object& workflow) {
    std::vector<std::string> found;
    const auto checked = check(workflow, fleet());
    if (!checked) {
        for (const json::value& finding : checked.error().details.at("findings").as_array()) {
            const json::object& one = finding.as_object();
            const auto text = [&one](const char* key) {
                const json::value* value = one.if_contains(key);
                return value != nullptr ? std::string(value->as_string()) : std::string();
            };
            found.push_back(text("node_id") + "." + text("input") + " " + text("reason"));
        }
    }
    return found;
}

std::vector<std::string> findings_with(const char* id, const char* node) {
    json::object workflow = parse(kGood);
    workflow[id] = parse(node);
    return findings(workflow);
}

using Found = std::vector<std::string>;

TEST(LooseEnds, OfNodesThatNoOutputNeedsOnlyTheStructureCounts) {
    EXPECT_EQ(findings(parse(kGood)), Found{});
    EXPECT_EQ(findings_with("3", R"({"class_type": "Make", "inputs": {"width": 99}})"), Found{});
    EXPECT_EQ(
        findings_with("3", R"({"class_type": "Turn", "inputs": {"image": ["9", 0]}})"),
        Found{"3.image bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("3", R"({"class_type": "Turn", "inputs": {"image": ["1", 1]}})"),
        Found{"3.image bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("3", R"({"class_type": "Turn", "inputs": {}})"),
        Found{"3.image required_input_missing"}
    );
    EXPECT_EQ(
        findings_with("3", R"({"class_type": "Turn", "inputs": {"image": ["3", 0]}})"),
        Found{"3. dependency_cycle"}
    );
}

TEST(LooseEnds, WhatAnOutputNeedsIsToldOnce) {
    EXPECT_EQ(
        findings_with("2", R"({"class_type": "Save", "inputs": {"images": ["9", 0]}})"),
        Found{"2.images bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("2", R"({"class_type": "Save", "inputs": {"images": ["1", 0, 0]}})"),
        Found{"2.images bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("2", R"({"class_type": "Save", "inputs": {}})"),
        Found{"2.images required_input_missing"}
    );
    EXPECT_EQ(
        findings_with("1", R"({"class_type": "Turn", "inputs": {"image": ["1", 0]}})"),
        Found{"1. dependency_cycle"}
    );
}

TEST(LooseEnds, InputsThatTheClassDoesNotKnowLeadSomewhereToo) {
    EXPECT_EQ(
        findings_with(
            "2", R"({"class_type": "Save", "inputs": {"images": ["1", 0], "more": ["9", 0]}})"
        ),
        Found{"2.more bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("1", R"({"class_type": "Make", "inputs": {"width": 1, "more": ["2", 0]}})"),
        Found{"1.more bad_linked_input"}
    );
}

// Everything else that reads links counts outputs from 0.
TEST(LooseEnds, OutputsAreCountedFromTheFirst) {
    EXPECT_EQ(
        findings_with("2", R"({"class_type": "Save", "inputs": {"images": ["1", -1]}})"),
        Found{"2.images bad_linked_input"}
    );
    EXPECT_EQ(
        findings_with("2", R"({"class_type": "Save", "inputs": {"images": ["1", false]}})"),
        Found{"2.images bad_linked_input"}
    );
}

}  // namespace
}  // namespace comfyd::workflow
