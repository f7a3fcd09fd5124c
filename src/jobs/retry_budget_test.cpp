#include "jobs/retry_budget.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace comfyd::jobs {
namespace {

constexpr Time kNow = Time(Millis(1'700'000'000'000));

// The most that fall due within any minute.
std::size_t most_in_a_minute(std::vector<Time> due) {
    std::ranges::sort(due);
    std::size_t most = 0;
    for (std::size_t first = 0, last = 0; last < due.size(); ++last) {
        while (due[last] - due[first] >= Millis(60'000)) {
            ++first;
        }
        most = std::max(most, last - first + 1);
    }
    return most;
}

TEST(RetryBudget, WhatAMinuteEarnsMayBeTakenAtOnce) {
    RetryBudget budget({.part = 0, .per_minute = 6});
    for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(budget.take(kNow), Millis(0)) << i;
    }
    EXPECT_EQ(budget.held(), 0U);
    EXPECT_EQ(budget.take(kNow), Millis(10'000));
    EXPECT_EQ(budget.take(kNow), Millis(20'000)) << "each behind the other";
    EXPECT_EQ(budget.held(), 2U);
}

TEST(RetryBudget, IsAPartOfWhatIsStarted) {
    RetryBudget budget({.part = 0.2, .per_minute = 6});
    for (int i = 0; i < 100; ++i) {
        budget.note_start(kNow + Millis(i * 500));
    }
    const Time now = kNow + Millis(50'000);
    int free = 0;
    while (budget.take(now) == Millis(0)) {
        ++free;
    }
    EXPECT_EQ(free, 26);
}

TEST(RetryBudget, ForgetsStartsAfterAMinute) {
    RetryBudget budget({.part = 1, .per_minute = 1});
    for (int i = 0; i < 50; ++i) {
        budget.note_start(kNow);
    }
    EXPECT_EQ(budget.take(kNow + Millis(120'000)), Millis(0));
    EXPECT_GT(budget.take(kNow + Millis(120'000)), Millis(0));
}

TEST(RetryBudget, IsNeverExceededByMoreThanItsBurst) {
    for (const int gap : {0, 7, 100, 1'000, 9'000}) {
        RetryBudget budget({.part = 0, .per_minute = 12});
        std::vector<Time> due;
        for (int i = 0; i < 200; ++i) {
            const Time now = kNow + Millis(i * gap);
            due.push_back(now + budget.take(now));
        }
        EXPECT_LE(most_in_a_minute(due), 24U) << "gap " << gap;
    }
}

TEST(RetryBudget, AClockThatIsSetBackHoldsNothingUpForLong) {
    RetryBudget budget({.part = 0, .per_minute = 6});
    static_cast<void>(budget.take(kNow + std::chrono::hours(1'000)));
    EXPECT_LE(budget.take(kNow), std::chrono::hours(2));
}

}  // namespace
}  // namespace comfyd::jobs
