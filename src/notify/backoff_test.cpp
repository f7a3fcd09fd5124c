#include "notify/backoff.hpp"

#include <gtest/gtest.h>

namespace comfyd::notify {
namespace {

TEST(RetryWait, DoublesUpToALimit) {
    const Millis first(1000);
    const Millis longest(10'000);
    EXPECT_EQ(retry_wait(first, longest, 0, 1.0), Millis(1000));
    EXPECT_EQ(retry_wait(first, longest, 1, 1.0), Millis(2000));
    EXPECT_EQ(retry_wait(first, longest, 3, 1.0), Millis(8000));
    EXPECT_EQ(retry_wait(first, longest, 4, 1.0), Millis(10'000));
    EXPECT_EQ(retry_wait(first, longest, 1'000'000, 1.0), Millis(10'000));
    EXPECT_EQ(retry_wait(Millis(20'000), longest, 0, 1.0), Millis(10'000));
}

TEST(RetryWait, JitterTakesAtMostHalf) {
    EXPECT_EQ(retry_wait(Millis(1000), Millis(10'000), 0, 0.0), Millis(500));
    EXPECT_EQ(retry_wait(Millis(1000), Millis(10'000), 0, 0.5), Millis(750));
}

}  // namespace
}  // namespace comfyd::notify
