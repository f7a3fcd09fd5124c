#include "fleet/hand_ahead.hpp"

#include <gtest/gtest.h>

namespace comfyd::fleet {
namespace {

class HandAheadTest : public testing::Test {
protected:
    Time at(int ms) const { return Time(Millis(1'000'000 + ms)); }

    HandAhead ahead_;
    PromptId first_ = PromptId::make(at(0));
    PromptId second_ = PromptId::make(at(0));
};

TEST_F(HandAheadTest, AnotherMayComeShortlyBeforeAShortRunIsToEnd) {
    ahead_.add(first_, Millis(50), at(0));
    EXPECT_FALSE(ahead_.is_about_to_end(at(0)));
    EXPECT_EQ(ahead_.next_look(at(0)), at(50) - HandAhead::kAhead);
    EXPECT_TRUE(ahead_.is_about_to_end(at(50) - HandAhead::kAhead));
    EXPECT_FALSE(ahead_.stuck(at(60)));
}

TEST_F(HandAheadTest, BehindTheShortestAnotherMayComeAtOnce) {
    ahead_.add(first_, Millis(5), at(0));
    EXPECT_TRUE(ahead_.is_about_to_end(at(0)));
}

TEST_F(HandAheadTest, NobodyComesBehindWhatIsLongOrNotKnown) {
    ahead_.add(first_, std::nullopt, at(0));
    EXPECT_FALSE(ahead_.next_look(at(0)));
    EXPECT_FALSE(ahead_.is_about_to_end(at(10'000)));
    ahead_.remove(first_, at(10'000));
    ahead_.add(second_, HandAhead::kShort + Millis(1), at(10'000));
    EXPECT_FALSE(ahead_.next_look(at(10'000)));
    EXPECT_FALSE(ahead_.is_about_to_end(at(10'000) + HandAhead::kShort));
}

TEST_F(HandAheadTest, TheNextOneRunsFromTheEndOfTheOneBefore) {
    ahead_.add(first_, Millis(50), at(0));
    ahead_.add(second_, Millis(50), at(35));
    EXPECT_EQ(ahead_.first(), first_);
    ahead_.remove(first_, at(60));
    EXPECT_EQ(ahead_.first(), second_);
    EXPECT_FALSE(ahead_.is_about_to_end(at(60)));
    EXPECT_TRUE(ahead_.is_about_to_end(at(110) - HandAhead::kAhead));
}

TEST_F(HandAheadTest, OneThatIsTakenBackLeavesTheOtherAsItWas) {
    ahead_.add(first_, Millis(50), at(0));
    ahead_.add(second_, Millis(50), at(35));
    ahead_.remove(second_, at(40));
    EXPECT_TRUE(ahead_.is_about_to_end(at(40)));
    EXPECT_EQ(ahead_.first(), first_);
}

TEST_F(HandAheadTest, WhoWaitsBehindARunThatDoesNotEndIsNamed) {
    const Time late = at(50) + HandAhead::kPatience;
    ahead_.add(first_, Millis(50), at(0));
    ahead_.add(second_, Millis(50), at(35));
    EXPECT_EQ(ahead_.next_look(at(40)), late);
    EXPECT_FALSE(ahead_.stuck(late - Millis(1)));
    EXPECT_EQ(ahead_.stuck(late), second_);
    ahead_.remove(second_, late);
    EXPECT_FALSE(ahead_.stuck(late));
    EXPECT_FALSE(ahead_.is_about_to_end(late)) << "nobody else comes behind it";
    EXPECT_FALSE(ahead_.next_look(late));
}

}  // namespace
}  // namespace comfyd::fleet
