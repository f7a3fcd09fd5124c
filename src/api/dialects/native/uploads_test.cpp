#include "api/dialects/native/uploads.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"

namespace comfyd::api::native {
namespace {

TEST(Uploads, AreOfferedWhereTheirKindIsTakenAndOnce) {
    const std::string info = R"({
        "LoadImage": {"input": {"required": {"image": [["b.png", "own.png"],
            {"image_upload": true}]}}},
        "LoadImageOutput": {"input": {"required": {"image": [["c.png"],
            {"image_upload": true, "image_folder": "output"}]}}},
        "LoadAudio": {"input": {"required": {"audio": ["COMBO",
            {"audio_upload": true, "options": ["b.mp3"]}]}}},
        "LoadVideo": {"input": {"required": {"file": ["COMBO",
            {"video_upload": true, "options": []}]}}},
        "KSampler": {"input": {"required": {"sampler_name": [["euler"], {}]}}}})";
    const auto made =
        json::parse_object(with_uploads(info, {"clip.mp4", "own.png", "song.flac", "sub/own.webp"})
        );
    ASSERT_TRUE(made);
    const auto choices = [&](const char* class_type, const char* input) {
        const json::value& spec = made->at(class_type).at("input").at("required").at(input);
        return json::serialize(spec.at(0).is_array() ? spec.at(0) : spec.at(1).at("options"));
    };
    EXPECT_EQ(choices("LoadImage", "image"), R"(["own.png","sub/own.webp","b.png"])");
    EXPECT_EQ(choices("LoadImageOutput", "image"), R"(["c.png"])");
    EXPECT_EQ(choices("LoadAudio", "audio"), R"(["clip.mp4","song.flac","b.mp3"])");
    EXPECT_EQ(choices("LoadVideo", "file"), R"(["clip.mp4"])");
    EXPECT_EQ(choices("KSampler", "sampler_name"), R"(["euler"])");
}

}  // namespace
}  // namespace comfyd::api::native
