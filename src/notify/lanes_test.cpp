#include "notify/lanes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace comfyd::notify {
namespace {

const Time kNow = from_unix_ms(1'700'000'000'000);

Lanes::Limits limits(std::size_t at_once, std::size_t at_once_per_lane, std::size_t waiting) {
    return {
        .in_flight_max = at_once,
        .in_flight_per_lane_max = at_once_per_lane,
        .waiting_per_lane_max = waiting,
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

TEST(Lanes, OriginsTakeTurns) {
    Lanes lanes(limits(10, 10, 10));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    ASSERT_TRUE(lanes.add(to("b")));
    std::string order;
    while (auto attempt = lanes.take(kNow)) {
        order += attempt->lane;
    }
    EXPECT_EQ(order, "abaa");
}

TEST(Lanes, AnOriginGetsOnlyItsShare) {
    Lanes lanes(limits(10, 2, 10));
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(lanes.add(to("a")));
    }
    const auto first = lanes.take(kNow);
    ASSERT_TRUE(first);
    ASSERT_TRUE(lanes.take(kNow));
    EXPECT_FALSE(lanes.take(kNow));
    ASSERT_TRUE(lanes.add(to("b")));
    const auto other = lanes.take(kNow);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->lane, "b");
    lanes.left("a", Lanes::Ended::served, kNow);
    lanes.done(first->delivery.thread());
    EXPECT_FALSE(lanes.contains(first->delivery.thread()));
    EXPECT_TRUE(lanes.take(kNow));
    EXPECT_FALSE(lanes.take(kNow));
}

TEST(Lanes, TheTotalIsLimited) {
    Lanes lanes(limits(1, 1, 10));
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("b")));
    const auto first = lanes.take(kNow);
    ASSERT_TRUE(first);
    EXPECT_FALSE(lanes.take(kNow));
    lanes.left(first->lane, Lanes::Ended::served, kNow);
    lanes.done(first->delivery.thread());
    const auto second = lanes.take(kNow);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->lane, "b");
}

TEST(Lanes, AFullLaneRefuses) {
    Lanes lanes(limits(1, 1, 2));
    ASSERT_TRUE(lanes.add(to("a")));
    ASSERT_TRUE(lanes.add(to("a")));
    const Attempt refused = to("a");
    EXPECT_FALSE(lanes.add(refused));
    EXPECT_FALSE(lanes.contains(refused.delivery.thread()));
    EXPECT_TRUE(lanes.add(to("b")));
    EXPECT_EQ(lanes.size(), 3U);
}

TEST(Lanes, KnowsAJobUntilItIsDone) {
    Lanes lanes(limits(1, 1, 2));
    const Attempt attempt = to("a");
    ASSERT_TRUE(lanes.add(attempt));
    EXPECT_TRUE(lanes.contains(attempt.delivery.thread()));
    ASSERT_TRUE(lanes.take(kNow));
    EXPECT_TRUE(lanes.contains(attempt.delivery.thread()));
    lanes.left("a", Lanes::Ended::served, kNow);
    lanes.done(attempt.delivery.thread());
    EXPECT_FALSE(lanes.contains(attempt.delivery.thread()));
    EXPECT_EQ(lanes.size(), 0U);
}

class RestingLanes : public testing::Test {
protected:
    RestingLanes() {
        for (int i = 0; i < 20; ++i) {
            EXPECT_TRUE(lanes_.add(to("dead")));
        }
    }
    // Starts what may start and lets all of it end so.
    int try_all(Time now, Lanes::Ended how) {
        std::vector<Attempt> started;
        while (auto attempt = lanes_.take(now)) {
            started.push_back(std::move(*attempt));
        }
        for (const Attempt& attempt : started) {
            lanes_.left(attempt.lane, how, now);
            lanes_.done(attempt.delivery.thread());
        }
        return static_cast<int>(started.size());
    }

    Lanes lanes_{limits(10, 2, 100)};
};

TEST_F(RestingLanes, WhereAttemptsFailInARowOneIsTriedNowAndThen) {
    using enum Lanes::Ended;
    EXPECT_EQ(try_all(kNow, failed), 2);
    EXPECT_EQ(try_all(kNow, failed), 2) << "it rests from the third on";
    EXPECT_EQ(try_all(kNow, failed), 0);
    EXPECT_EQ(lanes_.resting(kNow), 1U);
    Time now = kNow;
    for (const int rest : {1'000, 2'000, 3'000, 3'000}) {
        EXPECT_EQ(lanes_.next_rested(), now + Millis(rest));
        EXPECT_EQ(try_all(now + Millis(rest - 1), failed), 0) << rest;
        now += Millis(rest);
        EXPECT_EQ(try_all(now, failed), 1) << rest;
    }
    EXPECT_EQ(try_all(now + Millis(3'000), served), 1);
    EXPECT_EQ(lanes_.resting(now + Millis(3'000)), 0U);
    EXPECT_EQ(lanes_.next_rested(), std::nullopt);
    EXPECT_EQ(try_all(now + Millis(3'000), served), 2) << "as before";
}

// A server has one lane, or one for each of its recipients.
TEST_F(RestingLanes, TellHowAServerIsDoing) {
    using State = CircuitBreaker::State;
    Lanes lanes{limits(10, 10, 100)};
    const auto fail_all = [&](Time now, const std::string& lane) {
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(lanes.add(to(lane)));
            const auto attempt = lanes.take(now);
            ASSERT_TRUE(attempt);
            lanes.left(attempt->lane, Lanes::Ended::failed, now);
            lanes.done(attempt->delivery.thread());
        }
    };
    EXPECT_EQ(lanes.breaker("mail:ops", kNow), State::closed);
    fail_all(kNow, "mail:ops:a@example.com");
    fail_all(kNow, "mail:opsextra");
    EXPECT_EQ(lanes.breaker("mail:ops", kNow), State::open);
    EXPECT_EQ(lanes.breaker("mail:opsextra", kNow), State::open);
    EXPECT_EQ(lanes.breaker("mail:op", kNow), State::closed) << "that is another one";
    EXPECT_EQ(lanes.breaker("sms:ops", kNow), State::closed);
    const Time later = kNow + Millis(1'000);
    EXPECT_EQ(lanes.breaker("mail:ops", later), State::half_open);
    ASSERT_TRUE(lanes.add(to("mail:ops:a@example.com")));
    const auto attempt = lanes.take(later);
    ASSERT_TRUE(attempt);
    lanes.left(attempt->lane, Lanes::Ended::served, later);
    lanes.done(attempt->delivery.thread());
    EXPECT_EQ(lanes.breaker("mail:ops", later), State::closed);
    EXPECT_EQ(lanes.breaker("mail:opsextra", later), State::half_open);
}

TEST_F(RestingLanes, OthersGoOn) {
    while (try_all(kNow, Lanes::Ended::failed) > 0) {
    }
    ASSERT_TRUE(lanes_.add(to("alive")));
    const auto next = lanes_.take(kNow);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->lane, "alive");
}

TEST_F(RestingLanes, WhatIsCutShortSaysNothing) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(try_all(kNow, Lanes::Ended::unknown), 2);
    }
}

TEST_F(RestingLanes, ASuccessUnderWayEndsTheRest) {
    const auto first = lanes_.take(kNow);
    const auto second = lanes_.take(kNow);
    ASSERT_TRUE(first && second);
    lanes_.left("dead", Lanes::Ended::failed, kNow);
    lanes_.done(first->delivery.thread());
    EXPECT_EQ(try_all(kNow, Lanes::Ended::failed), 1);
    EXPECT_EQ(try_all(kNow, Lanes::Ended::failed), 1);
    EXPECT_EQ(try_all(kNow, Lanes::Ended::failed), 0);
    lanes_.left("dead", Lanes::Ended::served, kNow);
    lanes_.done(second->delivery.thread());
    EXPECT_EQ(try_all(kNow, Lanes::Ended::served), 2);
}

}  // namespace
}  // namespace comfyd::notify
