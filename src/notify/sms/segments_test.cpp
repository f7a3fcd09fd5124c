#include "notify/sms/segments.hpp"

#include <gtest/gtest.h>

#include <random>

namespace comfyd::notify::sms {
namespace {

std::string times(std::string_view text, std::size_t count) {
    std::string made;
    for (std::size_t i = 0; i < count; ++i) {
        made += text;
    }
    return made;
}

TEST(Segments, AreCountedAsOperatorsCount) {
    EXPECT_EQ(measure("").segments, 1U);
    EXPECT_EQ(measure(times("a", 160)).segments, 1U);
    EXPECT_EQ(measure(times("a", 161)).segments, 2U);
    EXPECT_EQ(measure(times("a", 306)).segments, 2U);
    EXPECT_EQ(measure(times("a", 307)).segments, 3U);
    EXPECT_EQ(measure(times("é", 160)).segments, 1U) << "it is in the alphabet";
    EXPECT_EQ(measure(times("€", 80)).segments, 1U) << "two units each";
    EXPECT_EQ(measure(times("€", 81)).segments, 2U);
    EXPECT_EQ(measure(times("ж", 70)).segments, 1U);
    EXPECT_EQ(measure(times("ж", 71)).segments, 2U);
    EXPECT_EQ(measure(times("ж", 134)).segments, 2U);
    EXPECT_EQ(measure(times("ж", 135)).segments, 3U);
    EXPECT_EQ(measure(times("😀", 35)).segments, 1U);
    EXPECT_EQ(measure(times("😀", 36)).segments, 2U);
    EXPECT_EQ(measure(times("😀", 67)).segments, 3U) << "none is cut in two: 33 in a segment";
    EXPECT_EQ(measure(times("a", 100) + "😀").segments, 2U) << "one is enough for all";
    EXPECT_FALSE(measure("ç").is_gsm);
    EXPECT_TRUE(measure("Ç[]").is_gsm);
}

TEST(Segments, CutTextsFitAndAreBeginnings) {
    std::mt19937 random(7);
    const std::vector<std::string> alphabet{"a", "é", "€", "ж", "😀", " ", "["};
    for (int round = 0; round < 300; ++round) {
        const std::size_t kinds = 1 + random() % alphabet.size();
        std::string text;
        for (std::size_t i = random() % 900; i > 0; --i) {
            text += alphabet[random() % kinds];
        }
        const std::size_t max = 1 + random() % 4;
        const std::string kept = cut(text, max);
        ASSERT_LE(measure(kept).segments, max);
        if (kept != text) {
            ASSERT_TRUE(kept.ends_with("..."));
            const std::string beginning = kept.substr(0, kept.size() - 3);
            ASSERT_TRUE(text.starts_with(beginning));
            ASSERT_GT(measure(text).segments, max);
        }
    }
}

TEST(Segments, NothingIsCutThatFits) {
    EXPECT_EQ(cut(times("a", 320), 2), times("a", 303) + "...");
    EXPECT_EQ(cut(times("a", 306), 2), times("a", 306));
    EXPECT_EQ(cut("short", 1), "short");
}

}  // namespace
}  // namespace comfyd::notify::sms
