#include "comfy/held_frames.hpp"

#include <gtest/gtest.h>

#include "comfy/messages.hpp"

namespace comfyd::comfy {
namespace {

class HeldFramesTest : public testing::Test {
protected:
    bool hold(std::string text) { return held_.hold(text, HeldFrames::TimePoint()); }
    std::vector<std::string> take() {
        std::vector<std::string> texts;
        for (const auto& frame : held_.take()) {
            texts.push_back(frame.text);
        }
        return texts;
    }

    HeldFrames held_;
};

std::string state(const std::string& prompt, double value) {
    return encode_text(ProgressState{prompt, {{"3", value, 20, false, "3", "", "3"}}});
}

TEST_F(HeldFramesTest, OnlyTheLatestStateOfEachPromptIsLeft) {
    const std::string step = encode_text(StepProgress{"a", "3", 1, 20});
    const std::string executing = encode_text(Executing{"a", "3", "3"});
    for (const auto& text :
         {state("a", 0), executing, state("b", 1), state("a", 1), step, state("a", 2)}) {
        EXPECT_TRUE(hold(text)) << text;
    }
    EXPECT_EQ(take(), (std::vector{executing, state("b", 1), step, state("a", 2)}));
    EXPECT_TRUE(held_.empty());
    EXPECT_TRUE(hold(state("a", 3)));
    EXPECT_EQ(take(), std::vector{state("a", 3)});
}

TEST_F(HeldFramesTest, WhatIsMoreThanProgressIsReadAtOnce) {
    for (const Message& message : std::initializer_list<Message>{
             Executing{"a", std::nullopt, ""},
             ExecutionStart{"a", 1},
             ExecutionCached{"a", {}, 1},
             Executed{"a", "9", "9", nullptr},
             ExecutionSuccess{"a", 1},
         }) {
        const std::string text = encode_text(message);
        EXPECT_FALSE(hold(text)) << text;
    }
    for (const char* text :
         {"", "{", "[]", R"({"type":"progress","data":{}})", R"({"type": "progress_state", "data")"
         }) {
        EXPECT_FALSE(hold(text)) << text;
    }
    EXPECT_TRUE(held_.empty());
}

// Two prompts whose ids begin alike up to a quote are two prompts.
TEST_F(HeldFramesTest, AnIdThatMustBeReadToBeKnownIsReadAtOnce) {
    EXPECT_FALSE(hold(state("a\"b", 1)));
    EXPECT_TRUE(hold(encode_text(Executing{"x", "\"node\": null", "3"})));
}

TEST_F(HeldFramesTest, TheLengthOfItsQueueIsDropped) {
    EXPECT_TRUE(hold(encode_text(Status{3, "sid"})));
    EXPECT_TRUE(held_.empty());
}

TEST_F(HeldFramesTest, AWorkerThatSaysTooMuchIsHeard) {
    const std::string large = state(std::string(100'000, 'a'), 1);
    std::size_t bytes = 0;
    while (hold(large)) {
        bytes += large.size();
        ASSERT_LE(bytes, 1024U * 1024U);
    }
    EXPECT_GT(bytes, large.size());
    EXPECT_EQ(take(), std::vector{large});
    EXPECT_TRUE(hold(large));
}

}  // namespace
}  // namespace comfyd::comfy
