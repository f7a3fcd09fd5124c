#include "notify/lanes.hpp"

#include <gtest/gtest.h>

namespace comfyd::notify {
namespace {

Attempt to(const std::string& lane) {
    Attempt attempt;
    attempt.delivery.job = JobId::make(Time());
    attempt.lane = lane;
    return attempt;
}

TEST(Lanes, OriginsTakeTurns) {
    Lanes lanes({.in_flight_max = 10, .in_flight_per_lane_max = 10, .waiting_per_lane_max = 10});
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    ASSERT_TRUE(lanes.add(to("b")));
    std::string order;
    while (auto attempt = lanes.take()) {
        order += attempt->lane;
    }
    EXPECT_EQ(order, "abaa");
}

TEST(Lanes, AnOriginGetsOnlyItsShare) {
    Lanes lanes({.in_flight_max = 10, .in_flight_per_lane_max = 2, .waiting_per_lane_max = 10});
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    const auto first = lanes.take();
    ASSERT_TRUE(first);
    ASSERT_TRUE(lanes.take());
    EXPECT_FALSE(lanes.take());
    ASSERT_TRUE(lanes.add(to("b")));
    const auto other = lanes.take();
    ASSERT_TRUE(other);
    EXPECT_EQ(other->lane, "b");
    lanes.done(first->delivery.job, "a");
    EXPECT_FALSE(lanes.contains(first->delivery.job));
    EXPECT_TRUE(lanes.take());
    EXPECT_FALSE(lanes.take());
}

TEST(Lanes, TheTotalIsLimited) {
    Lanes lanes({.in_flight_max = 1, .in_flight_per_lane_max = 1, .waiting_per_lane_max = 10});
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("b")));
    const auto first = lanes.take();
    ASSERT_TRUE(first);
    EXPECT_FALSE(lanes.take());
    lanes.done(first->delivery.job, first->lane);
    const auto second = lanes.take();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->lane, "b");
}

TEST(Lanes, AFullLaneRefuses) {
    Lanes lanes({.in_flight_max = 1, .in_flight_per_lane_max = 1, .waiting_per_lane_max = 2});
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("a")));
    const Attempt refused = to("a");
    EXPECT_FALSE(lanes.add(refused));
    EXPECT_FALSE(lanes.contains(refused.delivery.job));
    EXPECT_TRUE(lanes.add(to("b")));
    EXPECT_EQ(lanes.size(), 3U);
}

TEST(Lanes, KnowsAJobUntilItIsDone) {
    Lanes lanes({.in_flight_max = 1, .in_flight_per_lane_max = 1, .waiting_per_lane_max = 2});
    const Attempt attempt = to("a");
    ASSERT_TRUE(lanes.add(attempt));
    EXPECT_TRUE(lanes.contains(attempt.delivery.job));
    ASSERT_TRUE(lanes.take());
    EXPECT_TRUE(lanes.contains(attempt.delivery.job));
    lanes.done(attempt.delivery.job, "a");
    EXPECT_FALSE(lanes.contains(attempt.delivery.job));
    EXPECT_EQ(lanes.size(), 0U);
}

}  // namespace
}  // namespace comfyd::notify
