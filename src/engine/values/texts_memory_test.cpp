// Texts, lists and data count like pictures, and are not made where there is no room for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_support.hpp"

namespace comfyd::engine {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr std::uint64_t kMegabyte = 1024 * 1024;

json::object node(std::string_view class_type, json::object inputs) {
    return {{"class_type", class_type}, {"inputs", std::move(inputs)}};
}
json::array link(int id) {
    return {std::to_string(id), 0};
}

class TextsMemory : public ::testing::Test {
protected:
    explicit TextsMemory(std::uint64_t bytes = 16 * kMegabyte) {
        EngineOptions options = folders.options();
        options.memory_bytes_max = bytes;
        core.emplace(make_registry(), options);
    }
    Result<RunResult> run(json::object prompt) {
        Listener listener;
        auto result = core->run(std::move(prompt), {}, listener, {});
        EXPECT_LE(core->memory().used(), core->memory().max());
        return result;
    }
    // A text of so many bytes, and nodes that each make one of twice the length.
    static json::object doubled(std::size_t bytes, int times, const json::object& how) {
        json::object prompt{{"1", node("PrimitiveString", {{"value", std::string(bytes, 'x')}})}};
        for (int id = 2; id < times + 2; ++id) {
            json::object step = how;
            for (auto& [name, input] : step["inputs"].as_object()) {
                if (input.is_null()) {
                    input = link(id - 1);
                }
            }
            prompt[std::to_string(id)] = std::move(step);
        }
        return prompt;
    }

    TestFolders folders;
    std::optional<Core> core;
};

TEST_F(TextsMemory, DoublingATextEndsWhereThereIsNoRoom) {
    const json::object ways[] = {
        node(
            "StringConcatenate", {{"string_a", nullptr}, {"string_b", nullptr}, {"delimiter", ""}}
        ),
        node("StringReplace", {{"string", nullptr}, {"find", "x"}, {"replace", "xx"}}),
        node(
            "RegexReplace",
            {{"string", nullptr}, {"regex_pattern", "^.*$"}, {"replace", "\\g<0>\\g<0>"}}
        ),
        node("StringFormat", {{"f_string", "{a}{a}"}, {"values.a", nullptr}}),
    };
    for (const json::object& way : ways) {
        SCOPED_TRACE(json::serialize(way));
        json::object prompt = doubled(100, 40, way);
        prompt["100"] = node("PreviewAny", {{"source", link(41)}});
        const auto result = run(std::move(prompt));
        ASSERT_FALSE(result);
        EXPECT_TRUE(
            result.error().code == Code::out_of_memory ||
            result.error().code == Code::node_execution_error
        ) << result.error().message;
    }
}

// As ComfyUI's front end would send it: 600 nodes that each hold a megabyte for the last one.
TEST_F(TextsMemory, TextsThatAreKeptCountTogether) {
    json::object prompt{{"1", node("PrimitiveString", {{"value", std::string(kMegabyte, 'x')}})}};
    json::object all;
    for (int id = 2; id < 12; ++id) {
        json::object parts;
        for (int i = 0; i < 10; ++i) {
            const int part = id * 100 + i;
            prompt[std::to_string(part)] = node(
                "StringConcatenate",
                {{"string_a", link(1)}, {"string_b", std::to_string(part)}, {"delimiter", ""}}
            );
            parts["inputs.input" + std::to_string(i)] = link(part);
        }
        prompt[std::to_string(id)] = node("CreateList", std::move(parts));
        all["inputs.input" + std::to_string(id - 2)] = link(id);
    }
    prompt["20"] = node("CreateList", std::move(all));
    prompt["21"] = node("PreviewAny", {{"source", link(20)}});
    const auto result = run(std::move(prompt));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::out_of_memory) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr("memory"));
}

TEST_F(TextsMemory, TextsThatNobodyNeedsMakeRoom) {
    json::object prompt{{"1", node("PrimitiveString", {{"value", std::string(kMegabyte, 'x')}})}};
    constexpr int kSteps = 100;
    for (int id = 2; id < kSteps; ++id) {
        prompt[std::to_string(id)] = node(
            "StringConcatenate", {{"string_a", link(id - 1)}, {"string_b", "y"}, {"delimiter", ""}}
        );
    }
    prompt["1000"] = node("StringLength", {{"string", link(kSteps - 1)}});
    prompt["1001"] = node("PreviewAny", {{"source", link(1000)}});
    const auto result = run(std::move(prompt));
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(
        result->outputs.at("1001").at("text").at(0),
        json::value(std::to_string(kMegabyte + kSteps - 2))
    );
}

TEST_F(TextsMemory, ListsCannotDoubleForEver) {
    json::object prompt{{"1", node("PrimitiveInt", {{"value", 1}})}};
    constexpr int kDoublings = 40;
    for (int id = 2; id < kDoublings; ++id) {
        prompt[std::to_string(id)] =
            node("CreateList", {{"inputs.input0", link(id - 1)}, {"inputs.input1", link(id - 1)}});
    }
    prompt["100"] = node("PreviewAny", {{"source", link(kDoublings - 1)}});
    const auto result = run(std::move(prompt));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::out_of_memory) << result.error().message;
}

TEST_F(TextsMemory, WhatIsShownCountsUntilTheRunEnds) {
    json::object prompt{{"1", node("PrimitiveString", {{"value", std::string(kMegabyte, 'x')}})}};
    for (int id = 2; id < 30; ++id) {
        prompt[std::to_string(id * 2)] = node(
            "StringConcatenate",
            {{"string_a", link(1)}, {"string_b", std::to_string(id)}, {"delimiter", ""}}
        );
        prompt[std::to_string(id * 2 + 1)] = node("PreviewAny", {{"source", link(id * 2)}});
    }
    const auto result = run(prompt);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::out_of_memory) << result.error().message;
    core->free_memory();
    EXPECT_EQ(core->memory().used(), 0);
}

class TextsShown : public TextsMemory {
protected:
    TextsShown() : TextsMemory(4096 * kMegabyte) {}
};

// However much results of nodes may take: all that is shown is written into answers, whole.
TEST_F(TextsShown, WhatARunShowsHasAnEndOfItsOwn) {
    const json::object twice = node(
        "StringConcatenate", {{"string_a", nullptr}, {"string_b", nullptr}, {"delimiter", ""}}
    );
    json::object prompt = doubled(kMegabyte, 5, twice);  // 32 MiB
    for (int id = 100; id < 120; ++id) {  // not the same text, and so not the same node
        const int text = id + 100;
        prompt[std::to_string(text)] = node(
            "StringConcatenate",
            {{"string_a", link(6)}, {"string_b", std::to_string(id)}, {"delimiter", ""}}
        );
        prompt[std::to_string(id)] = node("PreviewAny", {{"source", link(text)}});
    }
    const auto result = run(std::move(prompt));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::node_execution_error);
    EXPECT_THAT(result.error().message, HasSubstr("show more than 56 MiB together"));
}

TEST_F(TextsMemory, NothingIsCountedWhenAllIsForgotten) {
    json::object prompt = doubled(
        1000,
        8,
        node(
            "StringConcatenate", {{"string_a", nullptr}, {"string_b", nullptr}, {"delimiter", " "}}
        )
    );
    prompt["100"] = node("PreviewAny", {{"source", link(9)}});
    ASSERT_TRUE(run(prompt));
    EXPECT_GT(core->memory().used(), 256'000U);
    core->free_memory();
    EXPECT_EQ(core->memory().used(), 0);
}

}  // namespace
}  // namespace comfyd::engine
