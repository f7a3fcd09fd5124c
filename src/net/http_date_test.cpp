#include "net/http_date.hpp"

#include <gtest/gtest.h>

namespace comfyd::net {
namespace {

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
}  // namespace comfyd::net
