#include "limits/gcra.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace comfyd::limits {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kNow = 1'794'783'042'027'012;

TEST(Gcra, GivesAMinutesWorthAtOnceAndThenOneInEachInterval) {
    const Rate rate = per_minute(60);
    std::int64_t tat = 0;
    for (int i = 0; i < 60; ++i) {
        const Bid bid = weigh(rate, tat, kNow, 1);
        ASSERT_TRUE(bid.fits) << i;
        EXPECT_EQ(bid.remaining, 59 - i);
        tat = bid.tat;
    }
    const Bid refused = weigh(rate, tat, kNow, 1);
    EXPECT_FALSE(refused.fits);
    EXPECT_EQ(refused.remaining, 0);
    EXPECT_EQ(refused.wait, kSecond);
    EXPECT_FALSE(weigh(rate, tat, kNow + kSecond - 1, 1).fits);
    EXPECT_TRUE(weigh(rate, tat, kNow + kSecond, 1).fits);
}

TEST(Gcra, WeighsWhatCostsLessOrMore) {
    const Rate rate = per_minute(10);
    EXPECT_EQ(weigh(rate, 0, kNow, 0).remaining, 10);
    EXPECT_EQ(weigh(rate, 0, kNow, 0.2).remaining, 9);
    EXPECT_EQ(weigh(rate, 0, kNow, 4).remaining, 6);
    // More than a burst could never fit: it takes all.
    const Bid whole = weigh(rate, 0, kNow, 1000);
    EXPECT_TRUE(whole.fits);
    EXPECT_EQ(whole.remaining, 0);
}

TEST(Gcra, ForgetsAClockThatWasAhead) {
    const Rate rate = per_minute(60);
    const Bid bid = weigh(rate, kNow + 1'000'000 * kSecond, kNow, 1);
    EXPECT_FALSE(bid.fits);
    EXPECT_EQ(bid.wait, kSecond);
}

TEST(Gcra, TakesLimitsOfEverySize) {
    for (const double limit : {1e-9, 0.5, 1.0, 7.3, 600.0, 1e7, 1e12}) {
        const Rate rate = per_minute(limit);
        ASSERT_GT(rate.interval, 0) << limit;
        const Bid first = weigh(rate, 0, kNow, 1);
        EXPECT_TRUE(first.fits) << limit;
        EXPECT_GE(first.remaining, 0) << limit;
        EXPECT_GE(first.next, 0) << limit;
    }
    EXPECT_FALSE(weigh(per_minute(0.5), weigh(per_minute(0.5), 0, kNow, 1).tat, kNow, 1).fits);
}

// Whatever comes whenever: in no span of time more is let through than a burst and what the rate
// gives in that span; who waits as told is let in, and not before; nothing is lost to refusals.
TEST(Gcra, HoldsItsPromisesForRandomArrivals) {
    std::mt19937_64 random(20261118);
    for (int round = 0; round < 200; ++round) {
        const double limit = std::uniform_real_distribution(0.5, 500.0)(random);
        const Rate rate = per_minute(limit);
        std::int64_t now = kNow;
        std::int64_t tat = 0;
        std::vector<std::pair<std::int64_t, std::int64_t>> passed;  // when, and its cost in time
        for (int i = 0; i < 300; ++i) {
            now += std::uniform_int_distribution<std::int64_t>(0, rate.interval * 2)(random) *
                   (random() % 3 == 0 ? 1 : 0);
            const double cost = random() % 4 == 0 ? 0.2 : 1;
            const Bid bid = weigh(rate, tat, now, cost);
            ASSERT_GE(bid.remaining, 0);
            if (!bid.fits) {
                ASSERT_FALSE(weigh(rate, tat, now + bid.wait - 1, cost).fits);
                ASSERT_TRUE(weigh(rate, tat, now + bid.wait, cost).fits);
                continue;
            }
            passed.emplace_back(
                now,
                std::min(
                    static_cast<std::int64_t>(cost * static_cast<double>(rate.interval)),
                    rate.tolerance
                )
            );
            tat = bid.tat;
        }
        for (std::size_t from = 0; from < passed.size(); ++from) {
            std::int64_t sum = 0;
            for (std::size_t to = from; to < passed.size(); ++to) {
                sum += passed[to].second;
                ASSERT_LE(sum, rate.tolerance + passed[to].first - passed[from].first);
            }
        }
    }
}

}  // namespace
}  // namespace comfyd::limits
