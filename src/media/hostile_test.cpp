// Files that are made to break, fill or hold up whoever reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/deadline.hpp"
#include "media/make.hpp"
#include "media/test_support.hpp"

namespace comfyd::media {
namespace {

using test::gradient;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Answer make_all(std::string_view file, const char* name) {
    jobs::OutputWishes wishes;
    wishes.format = jobs::PictureFormat::webp;
    wishes.side_max = 100;
    wishes.poster = true;
    wishes.thumbnails = {256};
    const Deadline end = Deadline::in(std::chrono::seconds(60));
    return make({name, "", wishes}, file, [end] { return end.has_passed(); });
}

TEST(Hostile, PicturesOfMorePixelsThanAreDecodedAreRefusedByTheirHeader) {
    for (const std::string& file :
         {test::png_header(100'000, 100'000),
          test::png_header(16'000, 16'000),
          test::flat_png(10'001, 10'000, 1)}) {
        const Answer answer = make_all(file, "a.png");
        EXPECT_THAT(answer.variants, IsEmpty());
        ASSERT_THAT(answer.failed, SizeIs(2));
        EXPECT_THAT(answer.failed[0].reason, HasSubstr("at most"));
    }
}

TEST(Hostile, AFlatPictureOfManyPixelsTakesWhatItTakes) {
    for (const int interlace : {0, 1}) {
        const Answer answer = make_all(test::flat_png(3000, 2500, interlace), "a.png");
        EXPECT_THAT(answer.failed, IsEmpty()) << answer.failed[0].reason;
        EXPECT_THAT(answer.variants, SizeIs(2));
    }
}

TEST(Hostile, OfAnimationsThatAreTooLongTheFirstPictureIsShown) {
    const Answer answer = make_all(test::gif(500, 400, 10'000), "a.gif");
    EXPECT_EQ(answer.facts.frames, 10'000U);
    ASSERT_THAT(answer.variants, SizeIs(2));
    EXPECT_EQ(answer.variants[0].kind, "poster");
    EXPECT_EQ(answer.variants[1].facts.width, 256U);
    ASSERT_THAT(answer.failed, SizeIs(1));
    EXPECT_THAT(answer.failed[0].reason, HasSubstr("pixels together"));
}

TEST(Hostile, FilesThatEndTooEarlyFailOrAreShownAsFarAsTheyGo) {
    const std::pair<std::string, const char*> files[] = {
        {test::png(gradient(300, 200, true)), "a.png"},
        {test::jpeg(gradient(300, 200)), "a.jpg"},
        {test::webp(gradient(300, 200)), "a.webp"},
        {test::animated_webp(300, 200, 3), "a.webp"},
        {test::animated_png(300, 200, 3), "a.png"},
        {test::gif(300, 200, 5), "a.gif"},
        {test::video({}), "a.mp4"},
        {test::video({.muxer = "matroska"}), "a.mkv"},
        {test::wav(8000, 1), "a.wav"},
    };
    for (const auto& [file, name] : files) {
        for (std::size_t part = 0; part < 16; ++part) {
            const Answer answer =
                make_all(std::string_view(file).substr(0, file.size() * part / 16), name);
            for (const FailedVariant& failed : answer.failed) {
                EXPECT_FALSE(failed.reason.empty()) << name << " " << part;
            }
        }
    }
}

TEST(Hostile, AVideoWithoutPicturesHasNoPoster) {
    for (const bool has_sound : {false, true}) {
        for (const char* muxer : {"mp4", "matroska"}) {
            const Answer answer = make_all(
                test::video({.muxer = muxer, .frames = 0, .has_sound = has_sound}), "a.mp4"
            );
            EXPECT_THAT(answer.variants, IsEmpty()) << muxer;
            for (const FailedVariant& failed : answer.failed) {
                EXPECT_FALSE(failed.reason.empty()) << muxer;
            }
        }
    }
    const Answer one = make_all(test::video({.frames = 1}), "a.mp4");
    EXPECT_THAT(one.variants, SizeIs(2)) << "of a single frame it is that";
}

TEST(Hostile, GarbageBehindAGoodBeginningIsRefused) {
    const std::string noise = [] {
        std::string bytes;
        std::uint32_t state = 1;
        for (int i = 0; i < 20'000; ++i) {
            state = state * 1664525 + 1013904223;
            bytes += static_cast<char>(state >> 24);
        }
        return bytes;
    }();
    const std::pair<std::string, const char*> files[] = {
        {std::string("\x89PNG\r\n\x1a\n", 8) + noise, "a.png"},
        {"\xff\xd8\xff\xe0" + noise, "a.jpg"},
        {std::string("RIFF\x20\x4e\0\0WEBPVP8 ", 16) + noise, "a.webp"},
        {std::string("RIFF\x20\x4e\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\xff\xff\0\xff\xff\0", 30) +
             noise,
         "a.webp"},
        {std::string(
             "\0\0\0\x18"
             "ftypavif\0\0\0\0",
             16
         ) + noise,
         "a.avif"},
        {std::string(
             "\0\0\0\x18"
             "ftypisom\0\0\0\0",
             16
         ) + noise,
         "a.mp4"},
        {std::string("\x1A\x45\xDF\xA3", 4) + noise, "a.webm"},
        {"OggS" + noise, "a.ogg"},
        {"fLaC" + noise, "a.flac"},
        {"ID3" + noise, "a.mp3"},
        {"GIF89a" + noise, "a.gif"},
    };
    for (const auto& [file, name] : files) {
        const Answer answer = make_all(file, name);
        EXPECT_TRUE(answer.facts.is_picture() || answer.facts.is_moving()) << name;
        for (const FailedVariant& failed : answer.failed) {
            EXPECT_FALSE(failed.reason.empty()) << name;
        }
    }
}

}  // namespace
}  // namespace comfyd::media
