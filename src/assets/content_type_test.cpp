#include "assets/content_type.hpp"

#include <gtest/gtest.h>

namespace comfyd::assets {
namespace {

using namespace std::literals;

std::string guess(std::string_view bytes, bool is_whole = true) {
    return guess_content_type("", bytes, is_whole);
}

TEST(ContentType, TheNameDecidesWhereItSaysAnything) {
    EXPECT_EQ(guess_content_type("a/b/picture.PNG", "GIF89a", true), "image/png");
    EXPECT_EQ(guess_content_type("picture.unknownkind", "GIF89a", true), "image/gif");
    EXPECT_EQ(guess_content_type("picture", "GIF89a", true), "image/gif");
}

TEST(ContentType, KnowsMediaByTheirFirstBytes) {
    EXPECT_EQ(guess("\x89PNG\r\n\x1a\n...."), "image/png");
    EXPECT_EQ(guess("\xff\xd8\xff\xe0"), "image/jpeg");
    EXPECT_EQ(guess("RIFF....WEBPVP8 "), "image/webp");
    EXPECT_EQ(guess("GIF87a"), "image/gif");
    EXPECT_EQ(
        guess("\0\0\0\x18"
              "ftypisom"sv),
        "video/mp4"
    );
    EXPECT_EQ(guess("\x1a\x45\xdf\xa3"), "video/webm");
    EXPECT_EQ(guess("RIFF....WAVEfmt "), "audio/wav");
    EXPECT_EQ(guess("fLaC"), "audio/flac");
    EXPECT_EQ(guess("OggS"), "audio/ogg");
    EXPECT_EQ(guess("ID3\x04"), "audio/mpeg");
    EXPECT_EQ(guess("\xff\xfb\x90\x64"), "audio/mpeg");
    EXPECT_EQ(guess("\xff\xf1\x50\x80"), "audio/aac");
    EXPECT_EQ(guess("FORM....AIFFCOMM"), "audio/aiff");
    EXPECT_EQ(guess("RIFF....AVI LIST"), "video/x-msvideo");
    EXPECT_EQ(guess("\0\0\0\x14\x66typqt  "sv), "video/quicktime");
    EXPECT_EQ(guess("\0\0\1\xba\x44"sv), "video/mpeg");
    EXPECT_EQ(guess("\0\0\0\x18\x66typheic"sv), "image/heic");
    EXPECT_EQ(guess("\0\0\0\x18\x66typavif"sv), "image/avif");
    EXPECT_EQ(guess("BM\x46\0\0\0\0\0\0\0\x36"sv), "image/bmp");
    EXPECT_EQ(guess("BMX is no picture"), "text/plain; charset=utf-8");
    EXPECT_EQ(guess("II*\0\x08\0"sv), "image/tiff");
    EXPECT_EQ(guess("\x76\x2f\x31\x01\x02"), "image/x-exr");
}

TEST(ContentType, KnowsTextAndJson) {
    EXPECT_EQ(guess("Grüße\n"), "text/plain; charset=utf-8");
    EXPECT_EQ(guess(" {\"a\": 1}"), "application/json");
    EXPECT_EQ(guess("{broken"), "text/plain; charset=utf-8");
    EXPECT_EQ(guess("[{\"a\": ", false), "application/json");
    EXPECT_EQ(guess("Gr\xc3", false), "text/plain; charset=utf-8");
}

TEST(ContentType, TheRestIsBytes) {
    EXPECT_EQ(guess(""), "application/octet-stream");
    EXPECT_EQ(guess("Gr\xc3"), "application/octet-stream");
    EXPECT_EQ(guess("\0\1\2"sv), "application/octet-stream");
    EXPECT_EQ(guess("\xff\xff\xff"), "application/octet-stream");
    EXPECT_EQ(guess("\xff\xe1\xff"), "application/octet-stream");
    EXPECT_EQ(guess("\xff\xfeh\0i\0"sv), "application/octet-stream");
}

}  // namespace
}  // namespace comfyd::assets
