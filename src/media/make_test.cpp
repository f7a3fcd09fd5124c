#include "media/make.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <random>

#include "media/headers.hpp"
#include "media/metadata.hpp"
#include "media/placeholder.hpp"
#include "media/scale.hpp"
#include "media/test_support.hpp"

namespace comfyd::media {
namespace {

using jobs::OutputWishes;
using test::decoded;
using test::gradient;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

bool never() {
    return false;
}

Answer make_of(std::string_view file, std::string_view wishes, const char* name = "a.png") {
    const auto config = *json::parse_object(std::string(wishes));
    return make({name, "", *OutputWishes::from_json(config)}, file, never);
}

TEST(Make, ConvertsEachFormatIntoEach) {
    const Bitmap source = gradient(120, 80);
    const std::map<std::string, std::string> files{
        {"png", test::png(source)}, {"jpeg", test::jpeg(source)}, {"webp", test::webp(source)}
    };
    for (const auto& [from, file] : files) {
        for (const std::string to : {"png", "jpeg", "webp", "avif"}) {
            const Answer answer = make_of(file, R"({"format": ")" + to + R"(", "quality": 90})");
            EXPECT_THAT(answer.failed, IsEmpty()) << from << " to " << to;
            EXPECT_EQ(answer.facts.format, from);
            EXPECT_THAT(answer.facts.blurhash.size(), from == "png" && to == "png" ? 0 : 28);
            if (from == "png" && to == "png") {
                EXPECT_THAT(answer.variants, IsEmpty());
                continue;
            }
            ASSERT_THAT(answer.variants, SizeIs(1)) << from << " to " << to;
            const Variant& made = answer.variants[0];
            EXPECT_EQ(made.kind, "converted");
            EXPECT_EQ(made.facts.format, to);
            EXPECT_EQ(made.facts.width, 120U);
            EXPECT_EQ(made.facts.height, 80U);
            EXPECT_FALSE(made.facts.has_alpha.value_or(true));
            if (to != "avif") {
                EXPECT_LT(test::mean_difference(decoded(made.bytes), source), 3.0)
                    << from << " to " << to;
            }
        }
    }
}

TEST(Make, WithoutLossEveryPixelStays) {
    for (const bool has_alpha : {false, true}) {
        const Bitmap source = gradient(77, 45, has_alpha);
        const Answer answer = make_of(test::png(source), R"({"format": "webp", "lossless": true})");
        ASSERT_THAT(answer.variants, SizeIs(1));
        EXPECT_EQ(test::largest_difference(decoded(answer.variants[0].bytes), source), 0);
        const Answer back = make_of(answer.variants[0].bytes, R"({"format": "png"})");
        ASSERT_THAT(back.variants, SizeIs(1));
        EXPECT_EQ(test::largest_difference(decoded(back.variants[0].bytes), source), 0);
    }
}

TEST(Make, AlphaIsKeptOrLaidOnWhite) {
    const std::string file = test::png(gradient(64, 64, true));
    for (const char* format : {"webp", "avif"}) {
        const Answer answer = make_of(file, std::string(R"({"format": ")") + format + R"("})");
        ASSERT_THAT(answer.variants, SizeIs(1)) << format;
        EXPECT_TRUE(answer.variants[0].facts.has_alpha.value_or(false)) << format;
    }
    const Answer flat = make_of(file, R"({"format": "jpeg", "quality": 100})");
    ASSERT_THAT(flat.variants, SizeIs(1));
    const Bitmap made = decoded(flat.variants[0].bytes);
    for (int c = 0; c < 3; ++c) {
        EXPECT_GT(made.rgba[static_cast<std::size_t>(c)], 245);  // nothing was to be seen there
    }
}

// Red in one corner, so that each of the eight ways to lay a picture is seen.
Bitmap with_corner(std::size_t width, std::size_t height, std::size_t x, std::size_t y) {
    Bitmap picture{
        .width = width, .height = height, .rgba = std::vector<std::uint8_t>(width * height * 4, 255)
    };
    for (std::size_t row = y * height / 2; row < (y + 1) * height / 2; ++row) {
        for (std::size_t column = x * width / 4; column < (x + 1) * width / 4; ++column) {
            picture.rgba[4 * (row * width + column) + 1] = 0;
            picture.rgba[4 * (row * width + column) + 2] = 0;
        }
    }
    return picture;
}

TEST(Make, AJpegIsTurnedAsItAsksFor) {
    const Bitmap lying = with_corner(80, 40, 0, 0);
    // Where the upper left corner of the file is to be seen, of 1 to 8.
    constexpr std::array<std::pair<bool, bool>, 8> kRightAndBelow{
        {{false, false},
         {true, false},
         {true, true},
         {false, true},
         {false, false},
         {true, false},
         {true, true},
         {false, true}}
    };
    for (int orientation = 1; orientation <= 8; ++orientation) {
        const std::string file = test::turned_jpeg(lying, orientation);
        const Answer answer = make_of(file, R"({"format": "png"})");
        ASSERT_THAT(answer.variants, SizeIs(1));
        const bool is_across = orientation >= 5;
        EXPECT_EQ(answer.facts.width, is_across ? 40U : 80U) << orientation;
        const Bitmap seen = decoded(answer.variants[0].bytes);
        ASSERT_EQ(seen.width, is_across ? 40U : 80U) << orientation;
        const auto [right, below] = kRightAndBelow.at(static_cast<std::size_t>(orientation - 1));
        const std::size_t x = right ? seen.width - 4 : 3;
        const std::size_t y = below ? seen.height - 4 : 3;
        EXPECT_LT(seen.rgba[4 * (y * seen.width + x) + 1], 60) << orientation;
        // Without its EXIF it would lie again.
        const Answer stripped = make_of(file, R"({"strip_metadata": true})");
        ASSERT_THAT(stripped.variants, SizeIs(1));
        EXPECT_EQ(stripped.variants[0].facts.width, answer.facts.width) << orientation;
        EXPECT_EQ(jpeg_orientation(stripped.variants[0].bytes), orientation);
    }
}

TEST(Make, ThumbnailsAreNeverEnlarged) {
    struct Case {
        std::size_t width;
        std::size_t height;
        std::vector<Size> expected;
    };
    const Case cases[] = {
        {2000, 1000, {{1024, 512}, {512, 256}, {256, 128}}},
        {300, 600, {{300, 600}, {256, 512}, {128, 256}}},
        {100, 40, {{100, 40}, {100, 40}, {100, 40}}},
        {3000, 1, {{1024, 1}, {512, 1}, {256, 1}}},
    };
    for (const Case& one : cases) {
        const Bitmap source = gradient(one.width, one.height);
        const Answer answer = make_of(test::png(source), R"({"thumbnails": true})");
        ASSERT_THAT(answer.variants, SizeIs(3));
        EXPECT_THAT(answer.failed, IsEmpty());
        for (std::size_t i = 0; i < 3; ++i) {
            const Variant& made = answer.variants[i];
            EXPECT_EQ(made.kind, "thumbnail");
            EXPECT_EQ(made.size, 1024 >> i);
            EXPECT_EQ(made.facts.format, "webp");
            EXPECT_EQ(made.facts.width, one.expected[i].width);
            EXPECT_EQ(made.facts.height, one.expected[i].height);
            if (one.height > 1) {
                const Bitmap wanted = gradient(one.expected[i].width, one.expected[i].height);
                EXPECT_LT(test::mean_difference(decoded(made.bytes), wanted), 5.0);
            }
        }
    }
}

TEST(Make, LimitsOfSizeHoldTogether) {
    const std::string file = test::png(gradient(400, 200));
    const auto size_of = [&file](const char* wishes) {
        const Answer answer = make_of(file, wishes);
        EXPECT_THAT(answer.failed, IsEmpty()) << wishes;
        return answer.variants.empty()
                   ? Size{}
                   : Size{*answer.variants[0].facts.width, *answer.variants[0].facts.height};
    };
    EXPECT_EQ(size_of(R"({"max_size": 100})"), (Size{100, 50}));
    EXPECT_EQ(size_of(R"({"max_height": 100})"), (Size{200, 100}));
    EXPECT_EQ(size_of(R"({"max_width": 300, "max_height": 50})"), (Size{100, 50}));
    EXPECT_EQ(size_of(R"({"max_size": 400, "format": "webp"})"), (Size{400, 200}));
    EXPECT_EQ(size_of(R"({"max_size": 1000})"), Size{});  // it is as asked for
}

TEST(Make, TheWorkflowIsKeptWhereThereIsAPlaceForIt) {
    const test::Texts texts{{"workflow", R"({"nodes": []})"}, {"prompt", R"({"1": {}})"}};
    const std::string png = test::png(gradient(50, 50), texts);
    const std::string webp = test::webp(gradient(50, 50), texts);
    const auto keeps = [](const std::string& file, const char* wishes) {
        const Answer answer = make_of(file, wishes);
        EXPECT_THAT(answer.variants, SizeIs(1)) << wishes;
        return !answer.variants.empty() && answer.variants[0].facts.has_workflow.value_or(false);
    };
    EXPECT_TRUE(keeps(png, R"({"max_size": 20})"));
    EXPECT_TRUE(keeps(png, R"({"format": "webp"})"));
    EXPECT_TRUE(keeps(webp, R"({"max_size": 20})"));
    EXPECT_FALSE(keeps(png, R"({"format": "jpeg"})"));
    EXPECT_FALSE(keeps(png, R"({"format": "webp", "strip_metadata": true})"));
    EXPECT_FALSE(keeps(png, R"({"strip_metadata": true})"));
    EXPECT_FALSE(keeps(webp, R"({"strip_metadata": true})"));
    EXPECT_EQ(make_of(png, R"({"strip_metadata": true})").variants[0].kind, "stripped");
    EXPECT_FALSE(keeps(png, R"({"thumbnails": [256]})"));
}

TEST(Make, OfAnimationsTheFirstPictureIsShown) {
    for (const std::string& file :
         {test::animated_webp(300, 200, 3), test::animated_png(300, 200, 4), test::gif(300, 200, 5)
         }) {
        const Answer answer =
            make_of(file, R"({"format": "jpeg", "poster": true, "thumbnails": [256]})");
        ASSERT_THAT(answer.variants, SizeIs(2));
        EXPECT_EQ(answer.variants[0].kind, "poster");
        EXPECT_EQ(answer.variants[0].facts.width, 300U);
        EXPECT_EQ(answer.variants[1].kind, "thumbnail");
        EXPECT_EQ(answer.variants[1].facts.width, 256U);
        for (const Variant& made : answer.variants) {
            EXPECT_EQ(made.facts.kind, Kind::image);
        }
        ASSERT_THAT(answer.failed, SizeIs(1));
        EXPECT_EQ(answer.failed[0].kind, "converted");
        EXPECT_THAT(answer.failed[0].reason, HasSubstr("JPEG cannot hold"));
    }
}

TEST(Make, AnimationsStayAnimationsInEveryFormatThatHasThem) {
    const std::map<std::string, std::string> files{
        {"webp", test::animated_webp(120, 80, 5)},
        {"png", test::animated_png(120, 80, 5)},
        {"gif", test::gif(120, 80, 5)},
    };
    for (const auto& [from, file] : files) {
        for (const std::string to : {"webp", "png", "avif"}) {
            const Answer answer = make_of(file, R"({"max_size": 60, "format": ")" + to + R"("})");
            ASSERT_THAT(answer.failed, IsEmpty())
                << from << " to " << to << ": " << answer.failed[0].reason;
            ASSERT_THAT(answer.variants, SizeIs(1)) << from << " to " << to;
            const Facts& facts = answer.variants[0].facts;
            EXPECT_EQ(facts.kind, Kind::animated_image) << from << " to " << to;
            EXPECT_EQ(answer.facts.blurhash.size(), 28U) << from << " to " << to;
            EXPECT_EQ(facts.format, to) << from;
            EXPECT_EQ(facts.width, 60U) << from << " to " << to;
            EXPECT_EQ(facts.height, 40U) << from << " to " << to;
            EXPECT_NEAR(facts.duration_s.value_or(0), *answer.facts.duration_s, 0.01)
                << from << " to " << to;
            if (from != "gif") {  // of which the pictures hardly differ
                EXPECT_EQ(facts.frames, 5U) << from << " to " << to;
            }
        }
    }
}

TEST(Make, AvifIsReadAsWellAsWritten) {
    const std::string still = test::png(gradient(120, 80));
    const std::string moving = test::animated_png(120, 80, 5);
    for (const std::string& file : {still, moving}) {
        for (const char* wishes :
             {R"({"format": "avif", "lossless": true})", R"({"format": "avif", "quality": 90})"}) {
            const Answer written = make_of(file, wishes);
            ASSERT_THAT(written.variants, SizeIs(1)) << wishes;
            const Answer read = make_of(written.variants[0].bytes, R"({"thumbnails": [256]})");
            ASSERT_THAT(read.failed, IsEmpty()) << wishes << ": " << read.failed[0].reason;
            ASSERT_THAT(read.variants, SizeIs(1));
            EXPECT_EQ(read.facts.kind, file == still ? Kind::image : Kind::animated_image);
            EXPECT_LT(test::mean_difference(decoded(read.variants[0].bytes), decoded(file)), 5)
                << wishes;
        }
    }
    const Answer clear = make_of(test::png(gradient(20, 20, true)), R"({"format": "avif"})");
    const Answer read = make_of(clear.variants.at(0).bytes, R"({"format": "png"})");
    ASSERT_THAT(read.failed, SizeIs(1));
    EXPECT_THAT(read.failed[0].reason, HasSubstr("alpha"));
}

TEST(Make, EachPictureOfAnAnimationIsItsOwnAndAsLongAsItWas) {
    const std::string webp = test::animated_webp(40, 30, 4);
    const std::string png = test::animated_png(40, 30, 4);
    const auto check = [](const std::string& from, const char* wishes) {
        const Answer answer = make_of(from, wishes);
        ASSERT_THAT(answer.variants, SizeIs(1)) << wishes;
        const auto before = test::all_decoded(from);
        const auto after = test::all_decoded(answer.variants[0].bytes);
        ASSERT_EQ(before.size(), 4U);
        ASSERT_EQ(after.size(), 4U) << wishes;
        for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_EQ(after[i].duration_ms, i == 3 ? 500 : 100) << wishes << " " << i;
            EXPECT_EQ(test::largest_difference(before[i].picture, after[i].picture), 0)
                << wishes << " " << i;
        }
        const auto loops = [](std::string_view file) {
            return (*engine::pictures::open_animation(file, 10'000))->loops();
        };
        EXPECT_EQ(loops(from), 3);
        EXPECT_EQ(loops(answer.variants[0].bytes), 3) << wishes;
    };
    check(webp, R"({"format": "png"})");
    check(png, R"({"format": "webp", "lossless": true})");
}

TEST(Make, AnimationsKeepAlphaAndWorkflow) {
    const std::string clear = test::animated_webp(64, 48, 3, true);
    for (const std::string to : {"png", "avif"}) {
        const Answer answer = make_of(clear, R"({"format": ")" + to + R"("})");
        ASSERT_THAT(answer.variants, SizeIs(1)) << to;
        EXPECT_TRUE(answer.variants[0].facts.has_alpha.value_or(false)) << to;
    }
    const test::Texts texts{{"workflow", R"({"nodes": []})"}, {"prompt", R"({"1": {}})"}};
    const std::string told = test::animated_png(64, 48, 3, texts);
    const auto keeps = [&told](const char* wishes) {
        const Answer answer = make_of(told, wishes);
        return answer.variants.size() == 1 &&
               answer.variants[0].facts.kind == Kind::animated_image &&
               answer.variants[0].facts.has_workflow.value_or(false);
    };
    EXPECT_TRUE(keeps(R"({"format": "webp"})"));
    EXPECT_TRUE(keeps(R"({"max_size": 32})"));
    EXPECT_FALSE(keeps(R"({"format": "webp", "strip_metadata": true})"));
    EXPECT_FALSE(keeps(R"({"strip_metadata": true})"));
}

TEST(Make, VideosAreDescribedAndShown) {
    for (const char* muxer : {"mp4", "matroska"}) {
        test::Video what;
        what.muxer = muxer;
        what.has_sound = true;
        what.black_frames = 12;
        what.width = 320;
        what.height = 176;
        const std::string file = test::video(what);
        const Answer answer =
            make_of(file, R"({"poster": true, "thumbnails": [256], "format": "webp"})", "a.mp4");
        EXPECT_THAT(answer.failed, IsEmpty())
            << muxer << ": " << (answer.failed.empty() ? "" : answer.failed[0].reason);
        const Facts& facts = answer.facts;
        EXPECT_EQ(facts.kind, Kind::video) << muxer;
        EXPECT_EQ(facts.codec, "mpeg4") << muxer;
        EXPECT_EQ(facts.audio_codec, "aac") << muxer;
        EXPECT_EQ(facts.sample_rate, 44'100) << muxer;
        EXPECT_EQ(facts.channels, 2) << muxer;
        EXPECT_EQ(facts.width, 320U);
        EXPECT_EQ(facts.height, 176U);
        EXPECT_NEAR(facts.fps.value_or(0), 25, 0.1) << muxer;
        EXPECT_NEAR(facts.duration_s.value_or(0), 2, 0.15) << muxer;
        EXPECT_NEAR(static_cast<double>(facts.frames.value_or(0)), 50, 3) << muxer;
        ASSERT_THAT(answer.variants, SizeIs(2)) << muxer;
        EXPECT_EQ(answer.variants[0].kind, "poster");
        EXPECT_EQ(answer.variants[0].facts.width, 320U);
        EXPECT_EQ(answer.variants[1].facts.width, 256U);
        // The black beginning is not what it is about.
        EXPECT_GT(decoded(answer.variants[0].bytes).rgba[1], 100) << muxer;
        EXPECT_EQ(facts.blurhash.size(), 28U);
    }
}

TEST(Make, FindsTheWorkflowOfAVideo) {
    test::Video what;
    what.metadata = {{"workflow", R"({"nodes": []})"}};
    EXPECT_TRUE(make_of(test::video(what), "{}", "a.mp4").facts.has_workflow.value_or(false));
    EXPECT_FALSE(make_of(test::video({}), "{}", "a.mp4").facts.has_workflow.value_or(true));
}

TEST(Make, SoundsAreDescribed) {
    const Answer answer = make_of(test::wav(22'050, 1.5), R"({"thumbnails": true})", "a.wav");
    EXPECT_THAT(answer.failed, IsEmpty());
    EXPECT_THAT(answer.variants, IsEmpty());
    EXPECT_EQ(answer.facts.kind, Kind::audio);
    EXPECT_EQ(answer.facts.codec, "pcm_s16le");
    EXPECT_EQ(answer.facts.sample_rate, 22'050);
    EXPECT_NEAR(answer.facts.duration_s.value_or(0), 1.5, 0.01);
}

TEST(Make, WhatHasNoTimeFailsWithThatReason) {
    OutputWishes wishes;
    wishes.thumbnails = {512, 256};
    const Answer answer =
        make({"a.png", "", wishes}, test::png(gradient(600, 600)), [] { return true; });
    EXPECT_THAT(answer.variants, IsEmpty());
    ASSERT_THAT(answer.failed, SizeIs(2));
    EXPECT_THAT(answer.failed[0].reason, HasSubstr("longer"));
}

TEST(Make, AnySizeAndFormatComesOutRight) {
    std::mt19937 random(20261118);
    const auto below = [&random](std::size_t most) { return random() % most; };
    for (int round = 0; round < 40; ++round) {
        const Size size{1 + below(700), 1 + below(700)};
        const bool has_alpha = below(2) == 1;
        const std::string source = below(2) == 1 ? "png" : "webp";
        const std::string target = std::array{"png", "jpeg", "webp", "avif"}[below(4)];
        const int side_max = static_cast<int>(1 + below(800));
        const Bitmap picture = gradient(size.width, size.height, has_alpha);
        const std::string file = source == "png" ? test::png(picture) : test::webp(picture);
        const Answer answer = make_of(
            file,
            R"({"format": ")" + target + R"(", "max_size": )" + std::to_string(side_max) +
                R"(, "thumbnails": [256], "quality": 80})"
        );
        const std::string what = source + " " + std::to_string(size.width) + "x" +
                                 std::to_string(size.height) + " to " + target + " within " +
                                 std::to_string(side_max);
        ASSERT_THAT(answer.failed, IsEmpty()) << what << ": " << answer.failed[0].reason;
        for (const Variant& made : answer.variants) {
            const auto limit = static_cast<std::size_t>(made.kind == "thumbnail" ? 256 : side_max);
            const Size expected = fit(size, limit);
            EXPECT_EQ(made.facts.width, expected.width) << what;
            EXPECT_EQ(made.facts.height, expected.height) << what;
            // Of one that is so narrow there may be nothing that is seen through.
            if (has_alpha && expected.width > 8 && made.facts.format != "jpeg") {
                EXPECT_TRUE(made.facts.has_alpha.value_or(false)) << what;
            }
            if (!has_alpha) {
                EXPECT_FALSE(made.facts.has_alpha.value_or(true)) << what;
            }
        }
        EXPECT_FALSE(answer.variants.empty()) << what;
    }
}

TEST(Scale, TransparentColoursDoNotShine) {
    Bitmap picture{.width = 64, .height = 64, .rgba = {}, .has_alpha = true};
    for (std::size_t i = 0; i < 64U * 64U; ++i) {
        const bool is_seen = i % 2 == 0;
        const std::uint8_t red = is_seen ? 200 : 0;
        picture.rgba.insert(
            picture.rgba.end(),
            {red,
             0,
             static_cast<std::uint8_t>(is_seen ? 0 : 255),
             static_cast<std::uint8_t>(is_seen ? 255 : 0)}
        );
    }
    const Bitmap small = scale(picture, {8, 8}, never);
    for (std::size_t i = 0; i < small.rgba.size(); i += 4) {
        EXPECT_NEAR(small.rgba[i], 200, 3);
        EXPECT_LT(small.rgba[i + 2], 4);
    }
}

// Where the picture is `x`, `y` from its corner, each 0 to 1.
std::array<double, 3> decode_blurhash(std::string_view text, double x, double y) {
    constexpr std::string_view kDigits =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~";
    const auto number = [&](std::size_t at, std::size_t count) {
        int value = 0;
        for (const char digit : text.substr(at, count)) {
            value = value * 83 + static_cast<int>(kDigits.find(digit));
        }
        return value;
    };
    const int across = number(0, 1) % 9 + 1;
    const double most = (number(1, 1) + 1) / 166.0;
    std::array<double, 3> sum{};
    for (int k = 0; k < across * (number(0, 1) / 9 + 1); ++k) {
        const double basis = std::cos(M_PI * x * (k % across)) * std::cos(M_PI * y * (k / across));
        const int value = k == 0 ? number(2, 4) : number(4 + 2 * static_cast<std::size_t>(k), 2);
        for (int c = 0; c < 3; ++c) {
            const double srgb = (value >> (16 - 8 * c) & 255) / 255.0;
            const int step = value / (c == 0 ? 361 : c == 1 ? 19 : 1) % 19;
            const double root = (step - 9) / 9.0;
            sum[static_cast<std::size_t>(c)] +=
                basis * (k == 0 ? std::pow((srgb + 0.055) / 1.055, 2.4)
                                : std::copysign(root * root, root) * most);
        }
    }
    for (double& value : sum) {
        value = 255 * (1.055 * std::pow(std::max(value, 0.0), 1 / 2.4) - 0.055);
    }
    return sum;
}

TEST(Placeholder, LooksLikeThePictureWhenItIsDecoded) {
    const Bitmap picture = gradient(32, 24);
    const std::string hash = blurhash_of(picture);
    for (std::size_t y = 2; y < 24; y += 5) {
        for (std::size_t x = 2; x < 32; x += 5) {
            const auto shown =
                decode_blurhash(hash, static_cast<double>(x) / 32, static_cast<double>(y) / 24);
            for (std::size_t c = 0; c < 3; ++c) {
                EXPECT_NEAR(shown[c], picture.rgba[4 * (y * 32 + x) + c], 45) << x << "," << y;
            }
        }
    }
}

TEST(Placeholder, KnowsTheColourThatIsSeenMost) {
    Bitmap red{.width = 4, .height = 4, .rgba = {}, .has_alpha = false};
    for (int i = 0; i < 16; ++i) {
        red.rgba.insert(red.rgba.end(), {255, 0, 0, 255});
    }
    EXPECT_EQ(blurhash_of(red).substr(2, 4), "TI:j");  // the average, as others write red
    EXPECT_EQ(blurhash_of(red).size(), 28U);
    EXPECT_EQ(dominant_color_of(red), "#ff0000");
    for (std::size_t i = 0; i < 5U * 4U; i += 4) {
        red.rgba[i] = 0;
        red.rgba[i + 2] = 255;
    }
    EXPECT_EQ(dominant_color_of(red), "#ff0000");
    EXPECT_EQ(dominant_color_of({.width = 0, .height = 0, .rgba = {}}), "#ffffff");
}

}  // namespace
}  // namespace comfyd::media
