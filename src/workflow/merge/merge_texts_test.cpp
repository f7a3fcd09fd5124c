#include "workflow/merge/merge_texts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "workflow/merge/merge_test_support.hpp"

namespace comfyd::workflow {
namespace {

using namespace test;

// How many tokens CLIP and T5 really make of a text.
struct Sample {
    std::string_view text;
    std::size_t clip;
    std::size_t t5;
};

// clang-format off
constexpr auto kSamples = std::to_array<Sample>({
    {"a red fox in the snow, morning light", 9, 11},
    {"portrait of an astronaut reading a newspaper", 7, 8},
    {"masterpiece, best quality, ultra-detailed, 8k, (1girl:1.3), solo, long silver hair, red eyes", 28, 27},
    {"photo of a street in Lisbon, 35mm f/1.4, kodak portra 400, volumetric fog, 16:9", 31, 32},
    {"score_9, score_8_up, source_anime, twintails, aqua hair, rating_safe", 23, 25},
    {"a b c d e f g h i j k l m n o p", 16, 32},
    {"一只红色的狐狸在雪地里,清晨的阳光,油画风格", 54, 6},
    {"雪の中の赤い狐、朝の光、油絵", 26, 2},
    {"рыжая лиса на снегу, утренний свет, масляная живопись", 55, 40},
    {"한국의 겨울 풍경, 눈 덮인 산, 아침 햇살", 34, 18},
    {"un renard roux dans la neige, lumière du matin, peinture à l’huile", 23, 22},
    {"ein Dampfschiff auf der Donau im Abendlicht, Ölgemälde", 20, 19},
});
// clang-format on

TEST(MergeTexts, AreNeverTakenForShorterThanTheyAre) {
    for (const Sample& sample : kSamples) {
        EXPECT_TRUE(may_be_longer(sample.text, {sample.t5 - 1, false})) << sample.text;
        EXPECT_TRUE(may_be_longer(sample.text, {std::max(sample.clip, sample.t5) - 1, true}))
            << sample.text;
    }
}

TEST(MergeTexts, OfUsualLengthAreNotTakenForLonger) {
    const auto sd3_limit = text_limit(Graph(sd3()));
    const auto flux_limit = text_limit(Graph(flux()));
    ASSERT_TRUE(sd3_limit && flux_limit);
    std::string text;
    for (int i = 0; i < 4; ++i) {
        text += "a house on a green hill under a cloudy sky, ";
    }
    EXPECT_FALSE(may_be_longer(text, *sd3_limit));
    for (int i = 0; i < 9; ++i) {
        text += "a house on a green hill under a cloudy sky, ";
    }
    EXPECT_TRUE(may_be_longer(text, *sd3_limit));
    EXPECT_FALSE(may_be_longer(text, *flux_limit));
    for (const Sample& sample : kSamples) {
        EXPECT_FALSE(may_be_longer(sample.text, *flux_limit)) << sample.text;
    }
    EXPECT_FALSE(text_limit(Graph(sdxl())));
}

TEST(MergeTexts, WithEmbeddingsMayHaveAnyLength) {
    EXPECT_TRUE(may_be_longer("a cat, embedding:style", {255, false}));
}

}  // namespace
}  // namespace comfyd::workflow
