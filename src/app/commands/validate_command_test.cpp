#include "app/commands/validate_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace comfyd::app {
namespace {

using testing::HasSubstr;
using testing::Not;

class ValidateCommand : public testing::Test {
protected:
    ValidateCommand() { std::filesystem::create_directories(folder_); }
    ~ValidateCommand() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& text) {
        const std::string path = folder_ / name;
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }
    ValidateOutcome run(const ValidateFlags& flags) {
        auto outcome = validate_file(flags);
        EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
        return outcome ? *outcome : ValidateOutcome{};
    }

    std::string workflow(const std::string& steps) {
        return write(
            "workflow.json", R"({"1": {"class_type": "Make", "inputs": {"steps": )" + steps + R"(}},
                "2": {"class_type": "Save", "inputs": {"image": ["1", 0]}}})"
        );
    }
    std::string classes() {
        return write(
            "object_info.json",
            R"({"Make": {"input": {"required": {"steps": ["INT", {"min": 1, "max": 9}]}},
                         "output": ["IMAGE"]},
                "Save": {"input": {"required": {"image": ["IMAGE"]}}, "output": [],
                         "output_node": true}})"
        );
    }

    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() / ("comfyd-validate-" + std::to_string(::getpid()));
};

TEST_F(ValidateCommand, SaysWhatIsWrong) {
    const auto good = run({.file = workflow("5"), .object_info = classes()});
    EXPECT_TRUE(good.valid) << good.text;
    EXPECT_THAT(good.text, HasSubstr("valid, 2 nodes"));
    const auto bad = run({.file = workflow("50"), .object_info = classes()});
    EXPECT_FALSE(bad.valid);
    EXPECT_THAT(bad.text, HasSubstr("not valid"));
    EXPECT_THAT(bad.text, HasSubstr("error VALUE_OUT_OF_RANGE: node 1 (Make), input 'steps'"));
    const auto fixed = run({.file = workflow("50"), .object_info = classes(), .fix = true});
    EXPECT_TRUE(fixed.valid);
    EXPECT_THAT(fixed.text, HasSubstr("put right"));
}

TEST_F(ValidateCommand, SaysWhatWasNotChecked) {
    const auto outcome = run({.file = workflow("50")});
    EXPECT_TRUE(outcome.valid);
    EXPECT_THAT(outcome.text, HasSubstr("node classes, inputs and values were not checked"));
    EXPECT_THAT(outcome.text, HasSubstr("--url"));
    EXPECT_THAT(outcome.text, Not(HasSubstr("ok"))) << "nothing is praised that was not looked at";
}

TEST_F(ValidateCommand, PrintsJsonWithThePlan) {
    const auto outcome =
        run({.file = workflow("5"), .object_info = classes(), .json = true, .plan = true});
    const auto answer = json::parse_object(outcome.text);
    ASSERT_TRUE(answer) << outcome.text;
    EXPECT_EQ(answer->at("valid"), true);
    EXPECT_EQ(answer->at("plan").at("parallel_stages").as_array().size(), 2U);
    EXPECT_THAT(
        run({.file = workflow("5"), .object_info = classes(), .plan = true}).text,
        HasSubstr("batch key")
    );
}

TEST_F(ValidateCommand, ParametersAndConfigurationCount) {
    EXPECT_FALSE(
        run({.file = workflow("5"), .object_info = classes(), .parameters = {"1.steps=99"}}).valid
    );
    const std::string config =
        write("comfyd.yaml", "security:\n  denied_nodes: [\"Ma*\"]\n  nodes_max: 1\n");
    const auto outcome = run({.file = workflow("5"), .object_info = classes(), .config = config});
    EXPECT_THAT(outcome.text, HasSubstr("DANGEROUS_NODE"));
    EXPECT_THAT(outcome.text, HasSubstr("TOO_MANY_NODES"));
    EXPECT_FALSE(validate_file({.file = workflow("5"), .parameters = {"steps"}}));
    EXPECT_FALSE(validate_file({.file = "/nonexistent/workflow.json"}));
    EXPECT_FALSE(validate_file({.file = workflow("5"), .object_info = workflow("[")}));
}

}  // namespace
}  // namespace comfyd::app
