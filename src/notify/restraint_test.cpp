#include "notify/restraint.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace comfyd::notify {
namespace {

using std::chrono::minutes;

TEST(Restraint, WithoutLimitsNothingWaits) {
    ManualClock clock;
    Restraint restraint(clock, {});
    for (int i = 0; i < 1000; ++i) {
        ASSERT_FALSE(restraint.take("a"));
    }
}

TEST(Restraint, TheWholeCountGoesAtOnceAndThenOneForEachShare) {
    ManualClock clock;
    Restraint restraint(clock, {.of_channel = {6, minutes(1)}});
    for (int i = 0; i < 6; ++i) {
        ASSERT_FALSE(restraint.take("a" + std::to_string(i))) << i;
    }
    const auto wait = restraint.take("b");
    ASSERT_TRUE(wait);
    EXPECT_EQ(*wait, Millis(10'000));
    clock.advance(*wait);
    EXPECT_FALSE(restraint.take("b"));
    EXPECT_TRUE(restraint.take("b"));
}

TEST(Restraint, OneRecipientDoesNotUseUpAnothers) {
    ManualClock clock;
    Restraint restraint(clock, {.of_recipient = {2, minutes(60)}});
    EXPECT_FALSE(restraint.take("a"));
    EXPECT_FALSE(restraint.take("a"));
    EXPECT_TRUE(restraint.take("a"));
    EXPECT_FALSE(restraint.take("b"));
}

// What waits comes back one after the other, and nearly all find their place then.
TEST(Restraint, ThoseThatWaitDoNotComeBackAllAtOnce) {
    for (const int waiting : {1, 7, 100, 999}) {
        ManualClock clock;
        const Time start = clock.now();
        Restraint restraint(clock, {.of_channel = {10, minutes(1)}});
        for (int i = 0; i < 10; ++i) {
            ASSERT_FALSE(restraint.take("a"));
        }
        std::vector<Time> due;
        for (int i = 0; i < waiting; ++i) {
            const auto wait = restraint.take("a");
            ASSERT_TRUE(wait);
            due.push_back(start + *wait);
        }
        for (const Time at : due) {
            clock.advance(at - clock.now());
            EXPECT_FALSE(restraint.take("a"));
        }
    }
}

TEST(Restraint, APauseHoldsAllUntilItEnds) {
    ManualClock clock;
    Restraint restraint(clock, {});
    EXPECT_TRUE(restraint.pause(minutes(5)));
    EXPECT_FALSE(restraint.pause(minutes(5))) << "once is enough to be told of it";
    EXPECT_TRUE(restraint.is_paused());
    clock.advance(minutes(2));
    EXPECT_EQ(restraint.take("a"), Millis(minutes(3)));
    clock.advance(minutes(3));
    EXPECT_FALSE(restraint.is_paused());
    EXPECT_FALSE(restraint.take("a"));
}

}  // namespace
}  // namespace comfyd::notify
