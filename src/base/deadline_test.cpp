#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

using std::chrono::hours;

TEST(Deadline, HasPassedWhenNothingIsLeft) {
    for (const Millis gone : {Millis(0), Millis(-5), Millis(-1'000'000)}) {
        EXPECT_TRUE(Deadline::in(gone).has_passed());
        EXPECT_EQ(Deadline::in(gone).left(), Millis(0));
    }
    EXPECT_FALSE(Deadline::in(hours(1)).has_passed());
    EXPECT_GT(Deadline::in(hours(1)).left(), Millis(0));
    EXPECT_LE(Deadline::in(hours(1)).left(), hours(1));
}

TEST(Deadline, NeverIsLaterThanAnyOther) {
    EXPECT_FALSE(Deadline::never().has_passed());
    EXPECT_EQ(Deadline::never().left(), Millis::max());
    EXPECT_LT(Deadline::in(hours(24 * 365)), Deadline::never());
    EXPECT_EQ(Deadline::in(Deadline::Ticks::duration::max()), Deadline::never());
}

TEST(Deadline, APartEndsWithTheWholeOrBefore) {
    const Deadline whole = Deadline::in(hours(1));
    EXPECT_EQ(whole.or_in(hours(2)), whole);
    EXPECT_LT(whole.or_in(Millis(1)), whole);
    EXPECT_LE(Deadline::never().or_in(hours(1)).left(), hours(1));
}

}  // namespace
}  // namespace comfyd
