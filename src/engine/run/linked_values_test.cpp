// What nodes say to values from links that the limits of their inputs would not let pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::HasSubstr;

class LinkedValues : public ::testing::Test {
protected:
    static json::object number(std::int64_t value) {
        return {{"class_type", "PrimitiveInt"}, {"inputs", {{"value", value}}}};
    }
    Result<RunResult> run(json::object prompt) {
        return engine.run(std::move(prompt), {}, listener, {});
    }

    TestFolders folders;
    Engine engine{folders.options()};
    Listener listener;
};

TEST_F(LinkedValues, NoPicturesAreSavedOfAnEmptyBatch) {
    for (const auto& [amount, files] : {std::pair{0, 0U}, std::pair{1, 1U}, std::pair{3, 3U}}) {
        const auto result = run(
            {{"1", empty_image(8)},
             {"2", number(amount)},
             {"3",
              {{"class_type", "RepeatImageBatch"},
               {"inputs", {{"image", json::array{"1", 0}}, {"amount", json::array{"2", 0}}}}}},
             {"4", save_image("3", "repeated")}}
        );
        if (files == 0) {
            ASSERT_FALSE(result);
            EXPECT_THAT(result.error().message, HasSubstr("index 0 is out of bounds"));
            continue;
        }
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(result->outputs.at("4").at("images").as_array().size(), files);
    }
}

TEST_F(LinkedValues, ThereIsNoGroupOfANegativeNumber) {
    for (const char* mode : {"First Group", "All Groups"}) {
        const auto result = run(
            {{"1", number(-1)},
             {"2",
              {{"class_type", "RegexExtract"},
               {"inputs",
                {{"string", "xay"},
                 {"regex_pattern", "(a)"},
                 {"mode", mode},
                 {"case_insensitive", false},
                 {"multiline", true},
                 {"dotall", true},
                 {"group_index", json::array{"1", 0}}}}}},
             {"3", {{"class_type", "PreviewAny"}, {"inputs", {{"source", json::array{"2", 0}}}}}}}
        );
        ASSERT_FALSE(result);
        EXPECT_THAT(result.error().message, HasSubstr("no such group"));
    }
}

TEST_F(LinkedValues, NodesThatNeedPixelsSayThatThereAreNone) {
    const auto result = run(
        {{"1", empty_image(8)},
         {"2", number(0)},
         {"3",
          {{"class_type", "RepeatImageBatch"},
           {"inputs", {{"image", json::array{"1", 0}}, {"amount", json::array{"2", 0}}}}}},
         {"4",
          {{"class_type", "ImageBlur"},
           {"inputs", {{"image", json::array{"3", 0}}, {"blur_radius", 2}, {"sigma", 1.0}}}}},
         {"5", save_image("4", "blurred")}}
    );
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    EXPECT_THAT(result.error().message, HasSubstr("empty IMAGE of the size [0, 8, 8, 3]"));
}

TEST_F(LinkedValues, SizesOutOfReachAreErrors) {
    for (const std::int64_t width :
         {std::int64_t{-1},
          std::int64_t{1} << 31,
          std::int64_t{1} << 40,
          std::numeric_limits<std::int64_t>::max(),
          -std::numeric_limits<std::int64_t>::max()}) {
        json::object source = empty_image(8);
        source["inputs"].as_object()["width"] = json::array{"1", 0};
        const auto result =
            run({{"1", number(width)}, {"2", std::move(source)}, {"3", save_image("2", "wide")}});
        ASSERT_FALSE(result) << width;
        EXPECT_THAT(result.error().message, HasSubstr("width")) << width;
    }
}

}  // namespace
}  // namespace comfyd::engine
