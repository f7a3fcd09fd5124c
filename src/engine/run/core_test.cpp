#include "engine/run/core.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>

#include "engine/nodes/all.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

json::object saved_and_shown(const std::string& prefix) {
    json::object prompt;
    prompt["1"] = {
        {"class_type", "EmptyImage"},
        {"inputs", {{"width", 8}, {"height", 8}, {"batch_size", 1}, {"color", 7}}}
    };
    prompt["2"] = {
        {"class_type", "SaveImage"},
        {"inputs", {{"images", json::array{"1", 0}}, {"filename_prefix", prefix}}}
    };
    prompt["3"] = {{"class_type", "PreviewImage"}, {"inputs", {{"images", json::array{"1", 0}}}}};
    return prompt;
}

json::object loaded(const std::string& class_type, const std::string& name) {
    const bool is_mask = class_type == "LoadImageMask";
    json::object prompt;
    prompt["1"] = {{"class_type", class_type}, {"inputs", {{"image", name}, {"channel", "red"}}}};
    prompt["2"] = {
        {"class_type", is_mask ? "MaskPreview" : "PreviewImage"},
        {"inputs", {{is_mask ? "mask" : "images", json::array{"1", 0}}}}
    };
    return prompt;
}

class EngineOwners : public ::testing::Test {
protected:
    Owner owner(const std::string& name) const {
        const Folders all = folders.folders();
        return {name, {all.input, all.output / name, all.temp / name}};
    }
    Result<RunResult> run_as(const Owner& who, json::object prompt) {
        recorder = Recorder();
        return engine.run(std::move(prompt), {}, recorder, std::stop_token(), {}, &who);
    }

    TestFolders folders;
    Core engine{make_registry(), folders.options()};
    Recorder recorder;
    const Owner red = owner("red");
    const Owner blue = owner("blue");
};

TEST_F(EngineOwners, HaveOutputsAndNumbersOfTheirOwn) {
    for (const Owner& who : {red, blue}) {
        const auto made = run_as(who, saved_and_shown("both"));
        ASSERT_TRUE(made) << made.error().message;
        const json::value& image = made->outputs.at("2").at("images").at(0);
        EXPECT_EQ(image.at("filename"), "both_00001_.png");
        EXPECT_EQ(image.at("subfolder"), "");
        EXPECT_TRUE(std::filesystem::exists(who.folders.output / "both_00001_.png"));
    }
    ASSERT_TRUE(run_as(red, saved_and_shown("only")));
    for (const char* class_type : {"LoadImage", "LoadImageMask", "LoadImageOutput"}) {
        json::object own = loaded(class_type, "only_00001_.png [output]");
        EXPECT_TRUE(engine.validate(own, nullptr, &red).ok) << class_type;
        for (const char* name :
             {"only_00001_.png [output]",
              "red/only_00001_.png [output]",
              "../red/only_00001_.png [output]",
              "../output/red/only_00001_.png",
              "only_00001_.png [temp]"}) {
            json::object prompt = loaded(class_type, name);
            EXPECT_FALSE(engine.validate(prompt, nullptr, &blue).ok) << class_type << " " << name;
        }
    }
}

TEST_F(EngineOwners, DoNotLearnWhatOthersRan) {
    const json::object prompt = saved_and_shown("x");
    ASSERT_TRUE(run_as(red, prompt));
    EXPECT_THAT(recorder.cached_ids, IsEmpty());
    ASSERT_TRUE(run_as(blue, prompt));
    EXPECT_THAT(recorder.cached_ids, IsEmpty());
    ASSERT_TRUE(run_as(blue, prompt));
    EXPECT_THAT(recorder.cached_ids, UnorderedElementsAre("1", "2", "3"));
}

}  // namespace
}  // namespace comfyd::engine
