#include "workflow/catalogue/class_notes.hpp"

#include <gtest/gtest.h>

#include "workflow/catalogue/catalogue.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

// Custom classes, of which /object_info does not tell what they check themselves.
constexpr const char* kClasses = R"({
    "Plain": {"input": {"required": {"size": ["INT", {"max": 10}]}}, "output": ["IMAGE"],
              "python_module": "custom_nodes.pack", "output_node": true},
    "Own": {"input": {"required": {"size": ["INT", {"max": 10}], "other": ["INT", {"max": 10}]}},
            "output": [], "python_module": "custom_nodes.pack", "output_node": true},
    "All": {"input": {"required": {"size": ["INT", {"max": 10}]}}, "output": [],
            "python_module": "custom_nodes.pack", "output_node": true},
    "Links": {"input": {"required": {"mask": ["MASK"]}}, "output": [],
              "python_module": "custom_nodes.pack", "output_node": true}})";
constexpr const char* kDescribed = R"({
    "own_checks": {"Own": {"inputs": ["cls", "size", 7], "all_inputs": false, "link_types": false},
                   "All": {"inputs": ["cls"], "all_inputs": true},
                   "Links": {"inputs": ["cls", "input_types"], "link_types": true}, "Odd": 5},
    "changing": ["Own", 5]})";

Catalogue catalogue(std::string_view described) {
    ClassNotes notes;
    notes.read(*json::parse_object(described));
    return Catalogue(
        {{"gpu", *NodeClasses::from_object_info(*json::parse(kClasses), std::move(notes))}}
    );
}

json::object node(std::string_view text) {
    return {{"1", *json::parse(text)}};
}

std::string finding(const json::object& prompt, const Catalogue& known) {
    const auto checked = check(prompt, known);
    return checked
               ? ""
               : std::string(checked.error().details.at("findings").at(0).at("reason").as_string());
}

TEST(ClassNotes, AreReadWithWhatIsNotAsItShouldBeLeftOut) {
    ClassNotes notes;
    notes.read(*json::parse_object(kDescribed));
    EXPECT_TRUE(notes.told);
    EXPECT_EQ(notes.own_checks.size(), 3U);
    EXPECT_EQ(notes.own_checks.at("Own").inputs, (std::vector<std::string>{"cls", "size"}));
    EXPECT_TRUE(notes.own_checks.at("All").all_inputs);
    EXPECT_TRUE(notes.own_checks.at("Links").link_types);
    EXPECT_EQ(notes.changing, (std::set<std::string, std::less<>>{"Own"}));
    for (const char* none : {"{}", R"({"own_checks": []})", R"({"error": "no such route"})"}) {
        ClassNotes untold;
        untold.read(*json::parse_object(none));
        EXPECT_FALSE(untold.told) << none;
    }
}

TEST(ClassNotes, LimitsOfCustomClassesAreCheckedWhereItIsKnownThatComfyUiDoes) {
    const Catalogue told = catalogue(kDescribed);
    const Catalogue untold = catalogue("{}");
    const json::object plain = node(R"({"class_type": "Plain", "inputs": {"size": 11}})");
    EXPECT_EQ(finding(plain, told), "value_bigger_than_max");
    EXPECT_EQ(finding(plain, untold), "") << "left to the worker";
    const json::object own = node(R"({"class_type": "Own", "inputs": {"size": 11, "other": 1}})");
    EXPECT_EQ(finding(own, told), "");
    const json::object other = node(R"({"class_type": "Own", "inputs": {"size": 1, "other": 11}})");
    EXPECT_EQ(finding(other, told), "value_bigger_than_max");
    EXPECT_EQ(finding(node(R"({"class_type": "All", "inputs": {"size": 11}})"), told), "");
}

TEST(ClassNotes, AClassMayJudgeTheTypesOfItsLinks) {
    json::object prompt = node(R"({"class_type": "Plain", "inputs": {"size": 1}})");
    prompt["2"] = *json::parse(R"({"class_type": "Links", "inputs": {"mask": ["1", 0]}})");
    EXPECT_EQ(finding(prompt, catalogue(kDescribed)), "");
    EXPECT_EQ(finding(prompt, catalogue("{}")), "return_type_mismatch");
}

TEST(ClassNotes, AWorkerIsNeededForClassesThatCheckThemselves) {
    const Catalogue told = catalogue(kDescribed);
    for (const char* name : {"Own", "All", "Links"}) {
        const json::object prompt{{"1", {{"class_type", name}}}};
        EXPECT_TRUE(told.needs_worker_to_judge(prompt)) << name;
        EXPECT_FALSE(catalogue("{}").needs_worker_to_judge(prompt)) << name;
    }
    EXPECT_FALSE(told.needs_worker_to_judge({{"1", {{"class_type", "Plain"}}}, {"2", 5}}));
}

}  // namespace
}  // namespace comfyd::workflow
