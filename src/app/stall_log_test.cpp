#include "app/stall_log.hpp"

#include <gtest/gtest.h>

namespace comfyd::app {
namespace {

TEST(StallLog, WritesAtMostOneLineASecond) {
    ManualClock clock;
    StallLog stalls(clock);
    const Stall stall{Millis(30), "placing jobs"};
    EXPECT_TRUE(stalls.tell(stall));
    clock.advance(Millis(999));
    EXPECT_FALSE(stalls.tell(stall));
    clock.advance(Millis(1));
    EXPECT_TRUE(stalls.tell(stall));
    clock.advance(Millis(-5'000));
    EXPECT_TRUE(stalls.tell(stall));
}

}  // namespace
}  // namespace comfyd::app
