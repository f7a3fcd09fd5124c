#include <gtest/gtest.h>

#include "notify/lanes.hpp"

namespace comfyd::notify {
namespace {

const Time kNow = from_unix_ms(1'700'000'000'000);

Lanes::Limits limits(std::size_t per_lane) {
    return {
        .in_flight_max = 10,
        .in_flight_per_lane_max = per_lane,
        .waiting_per_lane_max = 10,
        .failures_before_rest = 3,
        .rest_first = Millis(1'000),
        .rest_max = Millis(3'000),
    };
}

Attempt to(const std::string& lane) {
    Attempt attempt;
    attempt.delivery.job = JobId::make(Time());
    attempt.lane = lane;
    return attempt;
}

TEST(LanesTogether, OthersOfTheLaneGoAlongUpToAsManyAsAreAskedFor) {
    Lanes lanes(limits(1));
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    ASSERT_TRUE(lanes.add(to("b")));
    auto first = lanes.take(kNow);
    ASSERT_TRUE(first);
    auto group = lanes.take_along("a", 2);
    ASSERT_EQ(group.size(), 2U);
    group.push_back(*first);
    auto other = lanes.take(kNow);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->lane, "b");
    EXPECT_FALSE(lanes.take(kNow)) << "the lane has its share in flight";
    for (const Attempt& attempt : group) {
        lanes.left(attempt.lane, Lanes::Ended::served, kNow);
        lanes.done(attempt.delivery.thread());
    }
    first = lanes.take(kNow);
    ASSERT_TRUE(first);
    EXPECT_EQ(lanes.take_along("a", 10).size(), 1U);
    EXPECT_FALSE(lanes.take(kNow));
}

TEST(LanesTogether, ALaneThatWasEmptiedHasNoTurn) {
    Lanes lanes(limits(8));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    const auto first = lanes.take(kNow);
    ASSERT_TRUE(first);
    EXPECT_EQ(lanes.take_along("a", 99).size(), 2U);
    EXPECT_FALSE(lanes.take(kNow));
    ASSERT_TRUE(lanes.add(to("a")));
    EXPECT_TRUE(lanes.take(kNow));
}

// A lane that rests has its turn when it has rested, unless nobody is left in it.
TEST(LanesTogether, ALaneThatRestsAndIsEmptiedIsForgottenAmongTheResting) {
    Lanes lanes(limits(8));
    for (int i = 0; i < 7; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    auto first = lanes.take(kNow);
    ASSERT_TRUE(first);
    auto group = lanes.take_along("a", 3);
    group.push_back(*first);
    for (const Attempt& attempt : group) {
        lanes.left(attempt.lane, Lanes::Ended::failed, kNow);
        lanes.done(attempt.delivery.thread());
    }
    EXPECT_FALSE(lanes.take(kNow)) << "it rests";
    const Time rested = kNow + Millis(1'000);
    first = lanes.take(rested);
    ASSERT_TRUE(first);
    EXPECT_EQ(lanes.take_along("a", 99).size(), 2U);
    EXPECT_FALSE(lanes.next_rested());
    EXPECT_FALSE(lanes.take(rested + Millis(10'000)));
}

TEST(LanesTogether, NobodyGoesAlongWhereNobodyIsAskedFor) {
    Lanes lanes(limits(8));
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.take(kNow));
    EXPECT_TRUE(lanes.take_along("a", 0).empty());
    EXPECT_TRUE(lanes.take(kNow));
}

}  // namespace
}  // namespace comfyd::notify
