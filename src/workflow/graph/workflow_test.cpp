#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/parameters/parameters.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

json::object parse(const char* text) {
    return *json::parse_object(text);
}

std::shared_ptr<const NodeClasses> classes(const char* object_info) {
    return *NodeClasses::from_object_info(*json::parse(object_info));
}

constexpr const char* kImages = R"({
    "EmptyImage": {"input": {"required": {"width": ["INT"]}}, "output": ["IMAGE"], "output_node": false},
    "SaveImage": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true},
    "broken": 7})";

Catalogue images() {
    return Catalogue({{"w1", classes(kImages)}});
}

constexpr const char* kGood = R"({
    "1": {"class_type": "EmptyImage", "inputs": {"width": 8}},
    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})";

TEST(Check, AcceptsAGoodWorkflow) {
    const auto checked = check(parse(kGood), images());
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked->requirement.encoded(), "EmptyImage\nSaveImage");
    EXPECT_EQ(checked->node_count, 2);
}

TEST(Check, WithoutWorkersOnlyTheSyntaxCounts) {
    EXPECT_TRUE(check(parse(R"({"1": {"class_type": "Anything", "inputs": {}}})"), Catalogue({})));
    EXPECT_FALSE(check(
        parse(R"({"1": {"class_type": "Anything", "inputs": {"a": ["9", 0]}}})"), Catalogue({})
    ));
    EXPECT_FALSE(check(parse(R"({"1": 5})"), Catalogue({})));
    EXPECT_FALSE(check(parse(R"({"1": {"inputs": {}}})"), Catalogue({})));
    EXPECT_FALSE(check(parse("{}"), Catalogue({})));
}

TEST(Check, AllFindingsAreListedAtNodeAndField) {
    const auto refused = check(
        parse(R"({
            "1": {"class_type": "EmptyImage", "inputs": {}},
            "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 4]}},
            "3": {"class_type": "Nonsense", "inputs": {"x": ["8", 0], "y": [1, 2, 3]}}})"),
        images()
    );
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid_workflow);
    const json::object& details = refused.error().details;
    EXPECT_EQ(details.at("findings").as_array().size(), 5U);
    EXPECT_EQ(details.at("missing_nodes"), json::array{"Nonsense"});
    EXPECT_EQ(details.at("node_errors").at("1").at(0).at("field"), "width");
    EXPECT_EQ(details.at("node_errors").at("1").at(0).at("reason"), "required_input_missing");
}

TEST(Check, CyclesAndMissingOutputsAreFound) {
    const auto cycle = check(
        parse(R"({"1": {"class_type": "A", "inputs": {"x": ["2", 0]}},
                  "2": {"class_type": "A", "inputs": {"x": ["1", 0]}}})"),
        Catalogue({})
    );
    ASSERT_FALSE(cycle);
    EXPECT_EQ(cycle.error().details.at("findings").at(0).at("code"), "CIRCULAR_DEPENDENCY");
    const auto silent =
        check(parse(R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 1}}})"), images());
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().details.at("findings").at(0).at("code"), "NO_OUTPUT_NODE");
}

TEST(Check, ALongChainIsNoProblem) {
    json::object chain;
    for (int i = 0; i < 5000; ++i) {
        json::object inputs;
        if (i > 0) {
            inputs["x"] = json::array{std::to_string(i - 1), 0};
        }
        chain[std::to_string(i)] = {{"class_type", "A"}, {"inputs", inputs}};
    }
    EXPECT_TRUE(check(chain, Catalogue({})));
}

TEST(Check, NamesTheNearestWorkerWhenNoneHasEverything) {
    const Catalogue split(
        {{"a", classes(R"({"EmptyImage": {"output": ["IMAGE"]}})")},
         {"b", classes(R"({"SaveImage": {"output_node": true}})")}}
    );
    const auto refused = check(parse(kGood), split);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::no_capable_worker);
    EXPECT_EQ(refused.error().details.at("nearest_worker"), "a");
    EXPECT_EQ(refused.error().details.at("missing_there"), json::array{"SaveImage"});
}

TEST(Check, TheEditorsFormatIsNamed) {
    const auto refused = check(parse(R"({"nodes": [], "links": []})"), images());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::workflow_format_ui);
}

TEST(Check, WrappersAreOpened) {
    const json::object wrapped = parse((std::string(R"({"prompt": )") + kGood + "}").c_str());
    EXPECT_EQ(unwrap(wrapped).size(), 2U);
    EXPECT_EQ(unwrap(parse(kGood)).size(), 2U);
}

TEST(Parameters, BindByIdAndTitle) {
    json::object workflow = parse(kGood);
    workflow["1"].as_object()["_meta"] = {{"title", "Canvas"}};
    ASSERT_TRUE(bind_parameters(workflow, {{"1.width", 64}}));
    EXPECT_EQ(workflow.at("1").at("inputs").at("width"), 64);
    ASSERT_TRUE(bind_parameter(workflow, "Canvas.width", "128"));
    EXPECT_EQ(workflow.at("1").at("inputs").at("width"), 128);
    ASSERT_TRUE(bind_parameter(workflow, "Canvas.width", "a cat"));
    EXPECT_EQ(workflow.at("1").at("inputs").at("width"), "a cat");
}

TEST(Parameters, WrongNamesListTheRightOnes) {
    json::object workflow = parse(kGood);
    const auto node = bind_parameters(workflow, {{"7.width", 1}});
    ASSERT_FALSE(node);
    EXPECT_NE(node.error().message.find("1, 2"), std::string::npos) << node.error().message;
    const auto input = bind_parameters(workflow, {{"1.widht", 1}});
    ASSERT_FALSE(input);
    EXPECT_NE(input.error().message.find("it has width"), std::string::npos)
        << input.error().message;
    EXPECT_FALSE(bind_parameters(workflow, {{"width", 1}}));
}

TEST(Catalogue, MalformedEntriesAreLeftOut) {
    EXPECT_EQ(classes(kImages)->size(), 2U);
    EXPECT_FALSE(NodeClasses::from_object_info(json::value("text")));
}

}  // namespace
}  // namespace comfyd::workflow
