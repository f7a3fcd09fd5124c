#include "workflow/convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "workflow/check.hpp"
#include "workflow/test_catalogue.hpp"

namespace comfyd::workflow {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path.string());
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

const TestClasses& own_classes() {
    static const TestClasses classes(read_test_data("ui-workflows/object_info.facts.json"));
    return classes;
}

// Equal as JavaScript sees it: all numbers are doubles, the order of keys does not matter.
bool same(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        return a.to_number<double>() == b.to_number<double>();
    }
    if (a.kind() != b.kind()) {
        return false;
    }
    if (const json::object* members = a.if_object()) {
        return members->size() == b.get_object().size() &&
               std::ranges::all_of(*members, [&](const auto& member) {
                   const json::value* other = b.get_object().if_contains(member.key());
                   return other != nullptr && same(member.value(), *other);
               });
    }
    if (const json::array* items = a.if_array()) {
        return std::ranges::equal(*items, b.get_array(), same);
    }
    return a == b;
}

// What differs, in words; empty when nothing does.
std::string difference(const json::object& made, const json::object& expected) {
    std::string found;
    for (const auto& node : expected) {
        const json::value* own = made.if_contains(node.key());
        const std::string id(node.key());
        if (own == nullptr) {
            found += "node " + id + " is missing\n";
            continue;
        }
        if (own->at("class_type") != node.value().at("class_type")) {
            found += "node " + id + " has another class\n";
        }
        const json::object& inputs = own->at("inputs").as_object();
        const json::object& wanted = node.value().at("inputs").as_object();
        for (const auto& input : wanted) {
            const json::value* value = inputs.if_contains(input.key());
            if (value == nullptr || !same(*value, input.value())) {
                found += "node " + id + "." + std::string(input.key()) + ": " +
                         (value == nullptr ? "missing" : json::serialize(*value)) + ", not " +
                         json::serialize(input.value()) + "\n";
            }
        }
        for (const auto& input : inputs) {
            if (!wanted.contains(input.key())) {
                found += "node " + id + "." + std::string(input.key()) + " is too much: " +
                         json::serialize(input.value()) + "\n";
            }
        }
    }
    for (const auto& node : made) {
        if (!expected.contains(node.key())) {
            found += "node " + std::string(node.key()) + " is too much\n";
        }
    }
    return found;
}

std::vector<std::string> recordings(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".ui.json") || name.ends_with(".saved.json")) {
            names.push_back(entry.path().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

void expect_as_recorded(const std::string& path, const PromptClasses& classes) {
    const fs::path file(path);
    const std::string name = file.filename().string();
    const fs::path answer = file.parent_path() / (name.substr(0, name.find('.')) + ".api.json");
    const auto made = convert_ui(*json::parse_object(read_file(file)), classes);
    const json::object expected = *json::parse_object(read_file(answer));
    const bool refused = std::ranges::any_of(expected, [](const auto& node) {
        return !node.value().as_object().contains("class_type");
    });
    if (refused) {
        // The editor sends nodes of unknown classes without one, which no server takes.
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code, Code::invalid_workflow);
        EXPECT_FALSE(made.error().details.at("missing_nodes").as_array().empty());
        return;
    }
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(difference(*made, expected), "");
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = fs::path(info.param).filename().string();
    name = name.substr(0, name.rfind(".json"));
    std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

class RecordedConversion : public testing::TestWithParam<std::string> {};

TEST_P(RecordedConversion, GivesWhatTheEditorSends) {
    expect_as_recorded(GetParam(), own_classes());
}

INSTANTIATE_TEST_SUITE_P(
    Own,
    RecordedConversion,
    testing::ValuesIn(recordings(COMFYD_TEST_DATA "/ui-workflows/own")),
    case_name
);

// A folder with object_info.json and templates/, as recorded from a real editor, where there is
// one.
fs::path further_recordings() {
    const char* given = std::getenv("COMFYD_UI_WORKFLOWS");
    return given != nullptr ? fs::path(given)
                            : fs::path(COMFYD_TEST_DATA "/../../../shared/comfyui/ui-workflows");
}

TEST(FurtherConversions, GiveWhatTheEditorSends) {
    const std::vector<std::string> files = recordings(further_recordings() / "templates");
    if (files.empty()) {
        GTEST_SKIP() << "set COMFYD_UI_WORKFLOWS to a folder with recorded workflows";
    }
    const TestClasses classes(read_file(further_recordings() / "object_info.json"));
    for (const std::string& file : files) {
        SCOPED_TRACE(file);
        expect_as_recorded(file, classes);
    }
}

}  // namespace
}  // namespace comfyd::workflow
