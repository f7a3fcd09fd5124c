#include "jobs/output_wishes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace comfyd::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<OutputWishes> read(std::string_view text) {
    return OutputWishes::from_json(*json::parse_object(std::string(text)));
}

TEST(OutputWishes, AreReadFromOutputConfig) {
    const auto wishes = read(R"({"format": "jpg", "quality": 95, "max_size": 2048, "max_width": 900,
        "max_height": 800.0, "strip_metadata": true, "thumbnails": [256, 1024, 256], "poster": true,
        "storage": {"provider": "s3"}})");
    ASSERT_TRUE(wishes) << wishes.error().message;
    EXPECT_EQ(wishes->format, PictureFormat::jpeg);
    EXPECT_EQ(wishes->quality, 95);
    EXPECT_EQ(wishes->side_max, 2048);
    EXPECT_EQ(wishes->width_max, 900);
    EXPECT_EQ(wishes->height_max, 800);
    EXPECT_TRUE(wishes->strip_metadata);
    EXPECT_TRUE(wishes->poster);
    EXPECT_THAT(wishes->thumbnails, ElementsAre(1024, 256));
    EXPECT_THAT(read(R"({"thumbnails": true})")->thumbnails, ElementsAre(1024, 512, 256));
}

TEST(OutputWishes, NothingIsAskedForByNothing) {
    for (const char* nothing :
         {"{}",
          R"({"format": null, "thumbnails": false, "poster": false})",
          R"({"thumbnails": []})",
          R"({"quality": 80})",
          R"({"storage": {"bucket": "b"}, "anything": 7})"}) {
        const auto wishes = read(nothing);
        ASSERT_TRUE(wishes) << nothing;
        EXPECT_FALSE(wishes->any()) << nothing;
        EXPECT_TRUE(wishes->to_json().empty()) << nothing;
    }
    EXPECT_FALSE(OutputWishes::of({}).any());
    EXPECT_FALSE(OutputWishes::of({{"output_config", 7}}).any());
}

TEST(OutputWishes, WhatCannotBeIsRefusedByName) {
    for (const auto& [text, field] : std::initializer_list<std::pair<const char*, const char*>>{
             {R"({"format": "gif"})", "output_config.format"},
             {R"({"format": 1})", "output_config.format"},
             {R"({"quality": 0})", "output_config.quality"},
             {R"({"quality": 100.5})", "output_config.quality"},
             {R"({"quality": "high"})", "output_config.quality"},
             {R"({"lossless": 1})", "output_config.lossless"},
             {R"({"lossless": true, "format": "jpeg"})", "output_config.lossless"},
             {R"({"max_size": 0})", "output_config.max_size"},
             {R"({"max_width": 20000})", "output_config.max_width"},
             {R"({"max_height": -1})", "output_config.max_height"},
             {R"({"strip_metadata": "yes"})", "output_config.strip_metadata"},
             {R"({"thumbnails": [100]})", "output_config.thumbnails"},
             {R"({"thumbnails": 256})", "output_config.thumbnails"},
             {R"({"poster": 1})", "output_config.poster"},
         }) {
        const auto wishes = read(text);
        ASSERT_FALSE(wishes) << text;
        EXPECT_EQ(wishes.error().code, Code::invalid_argument);
        EXPECT_EQ(wishes.error().details.at("field"), field);
        EXPECT_THAT(wishes.error().message, HasSubstr(field));
    }
}

TEST(OutputWishes, ComeBackAsTheyWere) {
    for (const char* text :
         {R"({"format":"avif","quality":50,"lossless":true,"thumbnails":[512,256]})",
          R"({"format":"webp","max_size":100,"max_width":2,"max_height":3,"strip_metadata":true})",
          R"({"poster":true})"}) {
        const auto wishes = read(text);
        ASSERT_TRUE(wishes) << text;
        const auto again = OutputWishes::from_json(wishes->to_json());
        ASSERT_TRUE(again) << text;
        EXPECT_EQ(again->to_json(), wishes->to_json());
        EXPECT_EQ(
            json::serialize_canonical(wishes->to_json()),
            json::serialize_canonical(*json::parse_object(text))
        );
    }
}

}  // namespace
}  // namespace comfyd::jobs
