#include <gtest/gtest.h>

#include "notify/lanes.hpp"

namespace comfyd::notify {
namespace {

Attempt to(const std::string& lane) {
    Attempt attempt;
    attempt.delivery.job = JobId::make(Time());
    attempt.lane = lane;
    return attempt;
}

TEST(LanesTogether, OthersOfTheLaneGoAlongUpToAsManyAsAreAskedFor) {
    Lanes lanes({.in_flight_max = 10, .in_flight_per_lane_max = 1, .waiting_per_lane_max = 10});
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    ASSERT_TRUE(lanes.add(to("b")));
    auto first = lanes.take();
    ASSERT_TRUE(first);
    auto group = lanes.take_along("a", 2);
    ASSERT_EQ(group.size(), 2U);
    group.push_back(*first);
    auto other = lanes.take();
    ASSERT_TRUE(other);
    EXPECT_EQ(other->lane, "b");
    EXPECT_FALSE(lanes.take()) << "the lane has its share in flight";
    for (const Attempt& attempt : group) {
        lanes.done(attempt.delivery.thread(), attempt.lane);
    }
    first = lanes.take();
    ASSERT_TRUE(first);
    EXPECT_EQ(lanes.take_along("a", 10).size(), 1U);
    EXPECT_FALSE(lanes.take());
}

TEST(LanesTogether, ALaneThatWasEmptiedHasNoTurn) {
    Lanes lanes({.in_flight_max = 10, .in_flight_per_lane_max = 8, .waiting_per_lane_max = 10});
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    const auto first = lanes.take();
    ASSERT_TRUE(first);
    EXPECT_EQ(lanes.take_along("a", 99).size(), 2U);
    EXPECT_FALSE(lanes.take());
    ASSERT_TRUE(lanes.add(to("a")));
    EXPECT_TRUE(lanes.take());
}

TEST(LanesTogether, NobodyGoesAlongWhereNobodyIsAskedFor) {
    Lanes lanes({.in_flight_max = 10, .in_flight_per_lane_max = 8, .waiting_per_lane_max = 10});
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.take());
    EXPECT_TRUE(lanes.take_along("a", 0).empty());
    EXPECT_TRUE(lanes.take());
}

}  // namespace
}  // namespace comfyd::notify
