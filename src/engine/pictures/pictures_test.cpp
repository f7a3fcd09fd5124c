// What the recorded pictures do not cover: damaged and hostile files, limits, and the encoders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/pictures/apng.hpp"
#include "engine/pictures/encode.hpp"
#include "engine/pictures/png.hpp"
#include "engine/pictures/reader.hpp"
#include "engine/test_support.hpp"

namespace comfyd::engine::pictures {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::vector<std::string>& all_formats() {
    static const std::vector<std::string> names = {
        "photo420.jpg",
        "gray.jpg",
        "cmyk.jpg",
        "anim.gif",
        "anim.webp",
        "lossy.webp",
        "plain.bmp",
        "rgba.png",
        "anim_apng.png",
        "plain.tiff",
        "rgb16.png",
        "lossless_rgba.webp"
    };
    return names;
}

std::string input(const std::string& name) {
    return slurp(kGolden / "inputs" / name);
}

// Reads every frame into memory that fits exactly, so that a sanitizer sees a step too far.
Outcome<std::size_t> read_all(std::string_view file) {
    auto reader = open(file, [] { return false; });
    if (!reader) {
        return tl::unexpected(reader.error());
    }
    const Facts& facts = (*reader)->facts();
    const std::size_t pixels = facts.width * facts.height;
    if (pixels > 4'000'000) {
        return tl::unexpected(Failure{"larger than these tests need"});
    }
    std::vector<std::uint8_t> scratch(facts.scratch_bytes);
    std::vector<float> rgb(pixels * 3);
    std::vector<float> mask(facts.has_alpha ? pixels : 0);
    std::size_t frames = 0;
    while (frames < facts.frames_max) {
        const auto got = (*reader)->read(scratch.data(), rgb.data(), mask.data());
        if (!got) {
            return tl::unexpected(got.error());
        }
        if (!*got) {
            break;
        }
        ++frames;
    }
    return frames;
}

TEST(Pictures, EveryFormatIsReadWhole) {
    for (const std::string& name : all_formats()) {
        const auto frames = read_all(input(name));
        ASSERT_TRUE(frames) << name << ": " << frames.error().text;
        const std::size_t expected = name == "anim.gif"                               ? 4
                                     : name == "anim.webp" || name == "anim_apng.png" ? 3
                                                                                      : 1;
        EXPECT_EQ(*frames, expected) << name;
        const std::string file = input(name);
        EXPECT_TRUE(decode_rgba(file, 10'000)) << name;
    }
}

TEST(Pictures, TruncatedFilesAreRefusedOrReadInPart) {
    for (const std::string& name : all_formats()) {
        const std::string file = input(name);
        for (std::size_t size = 0; size < file.size(); size += 1 + file.size() / 60) {
            const std::string part = file.substr(0, size);
            const auto frames = read_all(part);
            EXPECT_TRUE(frames || !frames.error().text.empty()) << name;
            (void)decode_rgba(part, 10'000);
        }
    }
}

TEST(Pictures, DamagedFilesNeverCrash) {
    unsigned state = 12345;
    const auto random = [&state] { return (state = state * 1664525U + 1013904223U) >> 8; };
    for (const std::string& name : all_formats()) {
        const std::string file = input(name);
        for (int round = 0; round < 40; ++round) {
            std::string damaged = file;
            for (int i = 0; i < 4; ++i) {
                damaged[random() % damaged.size()] = static_cast<char>(random());
            }
            (void)read_all(damaged);
            (void)decode_rgba(damaged, 10'000);
        }
    }
}

TEST(Pictures, HugeSizesAreRefusedBeforeAnyMemoryIsTaken) {
    std::string gif = input("still.gif");
    gif.replace(6, 4, "\xff\xff\xff\xff", 4);
    EXPECT_FALSE(read_all(gif));
    std::string webp = input("anim.webp");
    webp.replace(24, 6, "\xff\xff\xff\xff\xff\xff", 6);
    const auto opened = open(webp, [] { return false; });
    ASSERT_FALSE(opened);
    std::string bmp = input("plain.bmp");
    bmp.replace(18, 4, std::string("\xff\xff\xff\x0f", 4));
    EXPECT_FALSE(read_all(bmp));
}

TEST(Pictures, SmallLimitsAreKept) {
    for (const std::string& name : all_formats()) {
        EXPECT_FALSE(decode_rgba(input(name), 16)) << name;
    }
}

TEST(Pictures, OtherFilesAreNamedAsSuch) {
    for (const char* text : {"", "P6 1 1 255 abc", "<svg/>", "#EXTM3U\nfile:///etc/passwd"}) {
        const auto opened = open(text, [] { return false; });
        ASSERT_FALSE(opened);
        EXPECT_THAT(opened.error().text, HasSubstr("known format"));
    }
}

std::vector<std::uint8_t> gradient(std::size_t side, std::size_t channels) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < side * side; ++i) {
        for (std::size_t c = 0; c < channels; ++c) {
            bytes.push_back(static_cast<std::uint8_t>(c == 3 ? 255 : (i % side + c * 40) * 2));
        }
    }
    return bytes;
}

TEST(Pictures, JpegComesBackNearly) {
    for (const std::size_t channels : {3U, 4U}) {
        const auto bytes = gradient(48, channels);
        const auto file = encode_jpeg({bytes.data(), 48, 48, channels}, 95);
        ASSERT_TRUE(file) << file.error().text;
        const auto back = decode_rgba(*file, 48 * 48);
        ASSERT_TRUE(back) << back.error().text;
        ASSERT_EQ(back->width, 48U);
        for (std::size_t i = 0; i < 48 * 48; ++i) {
            for (std::size_t c = 0; c < 3; ++c) {
                EXPECT_LE(std::abs(back->rgba[i * 4 + c] - bytes[i * channels + c]), 24);
            }
        }
    }
}

TEST(Pictures, JpegQualityDecidesTheSize) {
    const auto bytes = gradient(64, 3);
    const Pixels pixels{bytes.data(), 64, 64, 3};
    EXPECT_LT(encode_jpeg(pixels, 10)->size(), encode_jpeg(pixels, 95)->size());
}

TEST(Pictures, LosslessWebpComesBackWhole) {
    const auto bytes = gradient(20, 4);
    const auto file = encode_webp({bytes.data(), 20, 20, 4}, {.lossless = true});
    ASSERT_TRUE(file);
    const auto back = decode_rgba(*file, 400);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->rgba, bytes);
    EXPECT_FALSE(encode_webp({bytes.data(), 0, 20, 4}, {}));
}

TEST(Pictures, AnimatedPngHasEveryFrame) {
    std::vector<std::vector<std::uint8_t>> frames;
    for (const int value : {0, 100, 200}) {
        frames.emplace_back(12 * 12 * 3, static_cast<std::uint8_t>(value));
    }
    const auto assemble = [&](std::size_t count, int duration_ms) {
        std::size_t i = 0;
        const auto next = [&]() -> Outcome<std::optional<ApngFrame>> {
            if (i == count) {
                return std::nullopt;
            }
            return ApngFrame{
                encode_png(PngBytes{frames[i++].data(), 12, 12, 3}, 4, {}).value(), duration_ms
            };
        };
        return assemble_apng(next, 0, {{"comf", "hello"}});
    };
    const auto file = assemble(3, 125);
    ASSERT_TRUE(file);
    EXPECT_EQ(read_all(*file).value(), 3U);
    EXPECT_THAT(*file, HasSubstr("comfhello"));
    EXPECT_FALSE(assemble(3, 70'000));
    EXPECT_FALSE(assemble(0, 125));
    const auto still = assemble(1, 125);
    ASSERT_TRUE(still);
    EXPECT_THAT(*still, ::testing::Not(HasSubstr("acTL")));
    EXPECT_THAT(*still, ::testing::Not(HasSubstr("fcTL")));
}

TEST(Pictures, TextsOfAPngSurvive) {
    const std::vector<std::uint8_t> pixels(16, 7);
    const auto file = encode_png(PngBytes{pixels.data(), 2, 2, 4}, 4, {{"prompt", "{}"}});
    ASSERT_TRUE(file);
    const auto texts = read_png_texts(*file);
    ASSERT_EQ(texts.size(), 1U);
    EXPECT_EQ(texts[0].keyword, "prompt");
    EXPECT_EQ(texts[0].text, "{}");
}

}  // namespace
}  // namespace comfyd::engine::pictures
