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

TEST(RetryAfter, KnowsSecondsAndDates) {
    const Time now = *parse_rfc3339("1994-11-06T08:49:30Z");
    EXPECT_EQ(parse_retry_after("120", now), Millis(120'000));
    EXPECT_EQ(parse_retry_after("0", now), Millis(0));
    EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Millis(7000));
    EXPECT_EQ(parse_retry_after("Sat, 05 Nov 1994 08:49:37 GMT", now), Millis(0));
}

TEST(RetryAfter, RefusesTheRest) {
    const Time now;
    for (const char* text :
         {"", "-1", "1.5", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"
         }) {
        EXPECT_EQ(parse_retry_after(text, now), std::nullopt) << text;
    }
    EXPECT_LE(*parse_retry_after("999999999999999", now), std::chrono::hours(24 * 366));
    EXPECT_EQ(parse_retry_after("99999999999999999999999999", now), std::nullopt);
}

}  // namespace
}  // namespace comfyd::notify
