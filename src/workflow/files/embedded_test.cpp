#include "workflow/files/embedded.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>
#include <vector>

#include "workflow/files/picture_test_support.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::workflow {
namespace {

using test::big;
using test::chunk;
using test::png;
using test::text_chunk;

constexpr std::string_view kPrompt = R"({"1":{"class_type":"A","inputs":{}}})";
constexpr std::string_view kEditor = R"({"nodes":[{"id":1,"type":"A"}],"links":[],"version":0.4})";

std::string little(std::uint32_t number, int size = 4) {
    const std::string bytes = big(number, size);
    return {bytes.rbegin(), bytes.rend()};
}

std::string packed(std::string_view text) {
    uLongf size = compressBound(text.size());
    std::string bytes(size, '\0');
    compress2(
        reinterpret_cast<Bytef*>(bytes.data()),
        &size,
        reinterpret_cast<const Bytef*>(text.data()),
        text.size(),
        Z_BEST_SPEED
    );
    bytes.resize(size);
    return bytes;
}

// EXIF with one directory of texts.
std::string exif(bool is_big, const std::vector<std::pair<std::uint32_t, std::string>>& texts) {
    const auto number = [is_big](std::uint32_t n, int size) {
        return is_big ? big(n, size) : little(n, size);
    };
    std::string bytes = (is_big ? "MM" : "II") + number(42, 2) + number(8, 4) +
                        number(static_cast<std::uint32_t>(texts.size()), 2);
    std::string values;
    const std::size_t values_at = 8 + 2 + texts.size() * 12 + 4;
    for (const auto& [tag, text] : texts) {
        bytes += number(tag, 2) + number(2, 2) +
                 number(static_cast<std::uint32_t>(text.size() + 1), 4) +
                 number(static_cast<std::uint32_t>(values_at + values.size()), 4);
        values += text + '\0';
    }
    return bytes + number(0, 4) + values;
}

std::string webp(const std::string& exif_data) {
    const std::string body = "WEBP" + std::string("VP8 ") + little(3) + "abc" + '\0' + "EXIF" +
                             little(static_cast<std::uint32_t>(exif_data.size())) + exif_data;
    return "RIFF" + little(static_cast<std::uint32_t>(body.size())) + body;
}

void expect_prompt(const std::string& file) {
    const auto read = read_workflow_file(file);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(json::serialize(*read), kPrompt);
}

void expect_editor(const std::string& file) {
    const auto read = read_workflow_file(file);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(is_ui_format(*read)) << json::serialize(*read);
}

TEST(WorkflowFile, JsonInEveryShape) {
    const std::string prompt(kPrompt);
    expect_prompt(prompt);
    expect_prompt("\xef\xbb\xbf" + prompt);
    for (const char* wrapper : {"prompt", "workflow", "output"}) {
        expect_prompt("{\"" + std::string(wrapper) + "\":" + prompt + "}");
    }
    expect_prompt(R"({"input":{"workflow":)" + prompt + "}}");
    expect_prompt(R"({"workflow":)" + std::string(kEditor) + R"(,"output":)" + prompt + "}");
    expect_prompt(R"({"nodes":)" + prompt + R"(,"links":[]})");
    expect_editor(std::string(kEditor));
    expect_editor(R"({"workflow":)" + std::string(kEditor) + "}");
    const auto linked = read_workflow_file(
        R"({"nodes":{"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{}}},
            "links":[["1",0,"2","x"]]})"
    );
    ASSERT_TRUE(linked);
    EXPECT_EQ(json::serialize(linked->at("2").at("inputs")), R"({"x":["1",0]})");
}

TEST(WorkflowFile, PicturesOfComfyui) {
    expect_prompt(png(text_chunk("prompt", kPrompt) + text_chunk("workflow", kEditor)));
    expect_prompt(png(text_chunk("workflow", kEditor) + text_chunk("prompt", kPrompt)));
    expect_editor(png(text_chunk("workflow", kEditor)));
    expect_editor(png(text_chunk("prompt", "broken") + text_chunk("workflow", kEditor)));
    const std::string nul(1, '\0');
    expect_prompt(png(chunk("zTXt", "prompt" + nul + nul + packed(kPrompt))));
    expect_prompt(png(
        chunk("iTXt", "prompt" + nul + nul + nul + "en" + nul + "x" + nul + std::string(kPrompt))
    ));
    expect_prompt(png(chunk("iTXt", "prompt" + nul + "\1" + nul + nul + nul + packed(kPrompt))));
    for (const bool is_big : {false, true}) {
        const std::string both = exif(
            is_big,
            {{0x10f, "workflow:" + std::string(kEditor)}, {0x110, "prompt:" + std::string(kPrompt)}}
        );
        expect_prompt(webp(both));
        expect_prompt(webp(std::string("Exif\0\0", 6) + both));
        expect_editor(webp(exif(is_big, {{0x10f, "Workflow:" + std::string(kEditor)}})));
    }
}

TEST(WorkflowFile, ErrorsSayWhatWasFound) {
    const auto message = [](const std::string& file) {
        const auto read = read_workflow_file(file);
        return read ? std::string("a workflow") : read.error().message;
    };
    using testing::HasSubstr;
    EXPECT_THAT(message(png("")), HasSubstr("PNG picture holds no workflow: it has no texts"));
    EXPECT_THAT(
        message(png(text_chunk("parameters", "a cat") + text_chunk("Soft\x1bware", "x"))),
        HasSubstr("of texts it has 'parameters', 'Soft?ware', but neither 'prompt'")
    );
    EXPECT_THAT(
        message(png(text_chunk("prompt", "{"))), HasSubstr("the text 'prompt' of the PNG picture: ")
    );
    EXPECT_THAT(message("\xff\xd8\xff\xe0 JFIF"), HasSubstr("JPEG picture"));
    EXPECT_THAT(message(std::string("\0\0\0\x20", 4) + "ftypisom"), HasSubstr("MP4 video"));
    EXPECT_THAT(
        message(R"({"seed": 1, "steps": 20})"),
        HasSubstr("the members 'seed', 'steps', but no workflow")
    );
    EXPECT_THAT(message("{}"), HasSubstr("empty JSON object"));
}

TEST(WorkflowFile, NumbersThatOnlyPythonCallsJson) {
    const auto read = read_workflow_file(
        png(text_chunk("prompt", R"({"1":{"class_type":"A","inputs":{},"is_changed":[NaN]}})"))
    );
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->at("1").at("class_type"), "A");
}

TEST(WorkflowFile, WhatHoldsNoneIsRefused) {
    EXPECT_EQ(read_workflow_file("").error().code, Code::malformed_json);
    EXPECT_EQ(read_workflow_file("GIF87").error().code, Code::invalid_argument);
    EXPECT_EQ(read_workflow_file("[1]").error().code, Code::invalid_argument);
    EXPECT_EQ(read_workflow_file(png("")).error().code, Code::invalid_argument);
    EXPECT_EQ(
        read_workflow_file(png(text_chunk("Title", "x"))).error().code, Code::invalid_argument
    );
    EXPECT_EQ(
        read_workflow_file(png(text_chunk("prompt", "{"))).error().code, Code::malformed_json
    );
    EXPECT_EQ(read_workflow_file(webp("II")).error().code, Code::invalid_argument);
    EXPECT_EQ(
        read_workflow_file(R"({"nodes":{"1":{}},"links":[["1",0,"9","x"]]})").error().code,
        Code::invalid_workflow
    );
}

TEST(WorkflowFile, TextsThatGrowBeyondTheLimitAreNotUnpacked) {
    const std::string bomb = packed(std::string(kWorkflowBytesMax + 1, ' '));
    const std::string nul(1, '\0');
    std::string chunks;
    for (int i = 0; i < 1000; ++i) {
        chunks += chunk("zTXt", "prompt" + nul + nul + bomb.substr(0, 1000));
    }
    chunks += chunk("zTXt", "prompt" + nul + nul + bomb);
    EXPECT_EQ(read_workflow_file(png(chunks)).error().code, Code::invalid_argument);
    EXPECT_EQ(
        read_workflow_file(png(chunk("zTXt", "prompt" + nul + nul + bomb))).error().code,
        Code::invalid_argument
    );
}

TEST(WorkflowFile, DamagedFilesAreReadWithinTheirBytes) {
    const std::string nul(1, '\0');
    const std::vector<std::string> good{
        png(chunk("zTXt", "prompt" + nul + nul + packed(kPrompt)) + text_chunk("workflow", kEditor)
        ),
        webp(exif(true, {{0x110, "prompt:" + std::string(kPrompt)}})),
    };
    std::mt19937 random(7);
    for (const std::string& file : good) {
        for (std::size_t size = 0; size < file.size(); ++size) {
            (void)read_workflow_file(std::string(file.substr(0, size)));
        }
        for (int i = 0; i < 5000; ++i) {
            std::string damaged = file;
            for (int j = 0; j < 3; ++j) {
                damaged[random() % damaged.size()] = static_cast<char>(random());
            }
            (void)read_workflow_file(damaged);
        }
    }
}

}  // namespace
}  // namespace comfyd::workflow
