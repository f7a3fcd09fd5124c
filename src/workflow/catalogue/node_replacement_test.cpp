#include "workflow/catalogue/node_replacement.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/catalogue/test_catalogue.hpp"

namespace comfyd::workflow {
namespace {

json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

const TestClasses& classes() {
    static const TestClasses made(R"({
        "Make": {"input": {"required": {"size": ["INT"]}}, "output": ["IMAGE", "MASK"]},
        "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}})"
    );
    return made;
}

TEST(NodeReplacement, OldClassesGetTheirNewNames) {
    json::object prompt = parse(R"({
        "1": {"class_type": "OldMake", "inputs": {"width": 5, "gone": 1}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 0]}},
        "3": {"class_type": "Unknown", "inputs": {}}, "4": 7, "5": {"class_type": 3}})");
    const json::object rules = parse(R"({
        "OldMake": [{"new_node_id": "NoSuchClass"}, 5,
                    {"new_node_id": "Make", "input_mapping": [
                        {"new_id": "size", "old_id": "width"}, {"new_id": "big", "set_value": 3},
                        {"new_id": "real", "old_id": "absent"}, 4, {"new_id": 5}]}],
        "Save": [{"new_node_id": "Make"}], "Unknown": "x"})");
    apply_replacements(prompt, rules, classes());
    EXPECT_EQ(prompt.at("1"), parse(R"({"class_type": "Make", "inputs": {"size": 5, "big": 3}})"));
    EXPECT_EQ(prompt.at("2").at("class_type"), "Save");
    EXPECT_EQ(prompt.at("3").at("class_type"), "Unknown");
}

TEST(NodeReplacement, WithoutAMappingInputsStay) {
    json::object prompt = parse(
        R"({"1": {"class_type": "Make ", "inputs": {"size": 5}}, "2": {"class_type": "Make "}})"
    );
    apply_replacements(
        prompt, parse(R"({"Make ": [{"new_node_id": "Make", "input_mapping": null}]})"), classes()
    );
    EXPECT_EQ(prompt.at("1"), parse(R"({"class_type": "Make", "inputs": {"size": 5}})"));
    EXPECT_EQ(prompt.at("2"), parse(R"({"class_type": "Make"})"));
}

TEST(NodeReplacement, LinksFollowOutputsThatMoved) {
    json::object prompt = parse(R"({
        "1": {"class_type": "Old", "inputs": {}},
        "2": {"class_type": "Save", "inputs": {"images": ["1", 2], "more": ["1", 0], "other": ["3", 2],
                                               "text": "1", "list": ["1", 2, 3]}},
        "3": {"class_type": "Make", "inputs": {"size": ["1", 1]}}})");
    apply_replacements(
        prompt,
        parse(R"({"Old": [{"new_node_id": "Make", "input_mapping": null, "output_mapping": [
            {"new_idx": 0, "old_idx": 2}, {"new_idx": 2, "old_idx": 1}, 5, {"old_idx": 0}]}]})"),
        classes()
    );
    EXPECT_EQ(prompt.at("2").at("inputs"), parse(R"({"images": ["1", 0], "more": ["1", 0],
        "other": ["3", 2], "text": "1", "list": ["1", 2, 3]})"));
    EXPECT_EQ(prompt.at("3").at("inputs").at("size"), (json::array{"1", 2}));
}

TEST(NodeReplacement, AFleetHasTheRulesOfAllItsWorkers) {
    const auto worker = [](const char* name, std::string_view replacements) {
        ClassNotes notes;
        notes.replacements = parse(replacements);
        return Catalogue::Entry{
            name, *NodeClasses::from_object_info(json::object(), std::move(notes))
        };
    };
    const Catalogue catalogue(
        {worker("a", R"({"Old": [{"new_node_id": "A"}], "Odd": 5})"),
         worker("b", R"({"Old": [{"new_node_id": "A"}, {"new_node_id": "B"}], "Older": []})")}
    );
    EXPECT_EQ(
        catalogue.replacements(),
        parse(R"({"Old": [{"new_node_id": "A"}, {"new_node_id": "B"}], "Older": []})")
    );
}

}  // namespace
}  // namespace comfyd::workflow
