#include "base/dependency.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

using State = CircuitBreaker::State;

class DependencyTest : public testing::Test {
protected:
    static constexpr CircuitBreaker::Limits kLimits{3, Millis(1'000), Millis(4'000)};

    void go_away() {
        for (int i = 0; i < kLimits.failures; ++i) {
            it_.failed();
        }
    }

    ManualClock clock_;
    Dependency it_{"shop", kLimits, clock_};
};

TEST_F(DependencyTest, IsLeftAloneWhileItIsAway) {
    EXPECT_TRUE(it_.admit());
    EXPECT_FALSE(it_.failed());
    EXPECT_FALSE(it_.failed());
    EXPECT_TRUE(it_.failed()) << "which opens it";
    EXPECT_FALSE(it_.failed()) << "of a call from before";
    EXPECT_EQ(it_.state(), State::open);
    EXPECT_FALSE(it_.admit());
    EXPECT_GT(it_.wait(), Millis(0));
    EXPECT_LE(it_.wait(), kLimits.open_first);
    EXPECT_TRUE(it_.succeeded()) << "somebody heard otherwise that it is back";
    EXPECT_FALSE(it_.succeeded());
    EXPECT_TRUE(it_.admit());
}

TEST_F(DependencyTest, WhileItIsHalfOpenOneIsLetThrough) {
    go_away();
    clock_.advance(kLimits.open_first);
    EXPECT_EQ(it_.state(), State::half_open);
    {
        auto first = it_.admit();
        ASSERT_TRUE(first);
        EXPECT_FALSE(it_.admit());
        const Dependency::Pass moved = std::move(*first);
        first.reset();
        EXPECT_FALSE(it_.admit()) << "it is still under way";
    }
    EXPECT_TRUE(it_.admit()) << "the one before was given up and said nothing";
    {
        const auto pass = it_.admit();
        it_.failed();
    }
    EXPECT_EQ(it_.state(), State::open);
    EXPECT_FALSE(it_.admit());
    clock_.advance(kLimits.open_max);
    {
        const auto pass = it_.admit();
        EXPECT_TRUE(it_.succeeded());
        EXPECT_TRUE(it_.admit()) << "it is back for all";
    }
    EXPECT_EQ(it_.state(), State::closed);
}

}  // namespace
}  // namespace comfyd
