#include "scheduler/classifier.hpp"

#include <gtest/gtest.h>

namespace comfyd::scheduler {
namespace {

TEST(Classifier, WhatIsNotKnownChangesNothing) {
    for (int priority = 1; priority <= 10; ++priority) {
        Circumstances plain;
        plain.base_priority = priority;
        EXPECT_EQ(classify(plain).priority, priority);
    }
}

TEST(Classifier, TheTierMultiplies) {
    Circumstances circumstances;
    circumstances.tier = Tier::pro;
    EXPECT_EQ(classify(circumstances).priority, 7);
    circumstances.tier = Tier::enterprise;
    EXPECT_EQ(classify(circumstances).priority, 10);
    for (const Tier plain : {Tier::free, Tier::basic}) {
        circumstances.tier = plain;
        EXPECT_EQ(classify(circumstances).priority, 5);
    }
    circumstances.tier = Tier::premium;
    EXPECT_EQ(classify(circumstances).priority, 7);
    EXPECT_EQ(classify(circumstances).factors[0].reason, "the tier is premium");
    for (const char* name : {"free", "basic", "premium", "pro", "enterprise"}) {
        ASSERT_TRUE(parse_tier(name)) << name;
        EXPECT_EQ(to_string(*parse_tier(name)), name);
    }
    EXPECT_EQ(parse_tier("pro"), Tier::pro);
    EXPECT_EQ(parse_tier("gold"), std::nullopt);
}

TEST(Classifier, NoOtherFactorChangesMoreThanAFifth) {
    Circumstances best;
    best.expected_seconds = 1;
    best.memory_part = 0;
    best.cached_part = 1;
    best.quota_left = 1;
    Circumstances worst;
    worst.expected_seconds = 1000;
    worst.memory_part = 1;
    worst.cached_part = 0;
    worst.quota_left = 0;
    for (const Circumstances& circumstances : {best, worst}) {
        const Classification result = classify(circumstances);
        ASSERT_EQ(result.factors.size(), 5U);
        double score = 5;
        for (const Factor& factor : result.factors) {
            EXPECT_GE(factor.multiplier, 0.8) << factor.name;
            EXPECT_LE(factor.multiplier, 1.2) << factor.name;
            EXPECT_FALSE(factor.reason.empty());
            score *= factor.multiplier;
        }
        EXPECT_DOUBLE_EQ(result.score, score);
    }
    EXPECT_EQ(classify(best).priority, 6);
    EXPECT_EQ(classify(worst).priority, 4);
    EXPECT_NEAR(classify(best).factors[1].multiplier, 1.06, 1e-9) << "0.3 x 20 % for quick jobs";
    EXPECT_NEAR(classify(worst).factors[1].multiplier, 0.96, 1e-9) << "-0.2 x 20 % for long ones";
}

TEST(Classifier, WhatIsKeptOfAJobTellsTheSameAgain) {
    for (const double seconds : {1.0, 100.0, 1000.0}) {
        for (const double part : {0.1, 0.5, 0.9}) {
            for (const double cached : {0.0, 0.34, 1.0}) {
                for (const double quota : {0.05, 0.5}) {
                    Circumstances known{7, Tier::pro, seconds, part, cached, quota};
                    const Classification told = classify(known);
                    const Grounds kept = grounds_of(known);
                    EXPECT_EQ(priority_of(7, kept), told.priority);
                    const Classification again = classify(7, kept);
                    ASSERT_EQ(again.factors.size(), told.factors.size());
                    for (std::size_t i = 0; i < told.factors.size(); ++i) {
                        EXPECT_EQ(again.factors[i].multiplier, told.factors[i].multiplier);
                        EXPECT_EQ(again.factors[i].reason, told.factors[i].reason);
                    }
                }
            }
        }
    }
    EXPECT_EQ(grounds_of(Circumstances{}), Grounds{});
}

TEST(Classifier, OddFiguresStayOnTheScale) {
    Circumstances odd;
    odd.base_priority = 900;
    odd.expected_seconds = -1;
    odd.cached_part = 40;
    odd.quota_left = -3;
    EXPECT_EQ(classify(odd).priority, 10);
    odd.base_priority = -900;
    EXPECT_EQ(classify(odd).priority, 1);
    EXPECT_EQ(classify(odd).factors[4].multiplier, 0.9);
}

}  // namespace
}  // namespace comfyd::scheduler
