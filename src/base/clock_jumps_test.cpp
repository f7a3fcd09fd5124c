#include "base/clock_jumps.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

TEST(ClockJumps, TellByHowMuchTheClockWasSet) {
    ManualClock day;
    ManualClock steady(Time(Millis(5)));
    ClockJumps jumps(day, steady);
    const auto pass = [&](Millis time) {
        day.advance(time);
        steady.advance(time);
    };
    EXPECT_EQ(jumps.look(), Millis(0));
    pass(Millis(3'600'000));
    EXPECT_EQ(jumps.look(), Millis(0)) << "time has passed, and was not set";
    pass(Millis(10));
    day.advance(Millis(-300'000));
    EXPECT_EQ(jumps.look(), Millis(-300'000));
    EXPECT_EQ(jumps.look(), Millis(0)) << "it was told";
    pass(Millis(1'000));
    day.advance(Millis(7'000));
    EXPECT_EQ(jumps.look(), Millis(7'000));
    for (int i = 0; i < 10'000; ++i) {
        pass(Millis(1'000));
        day.advance(Millis(1));
        EXPECT_EQ(jumps.look(), Millis(0)) << "a clock that goes fast";
    }
}

}  // namespace
}  // namespace comfyd
