#include "base/circuit_breaker.hpp"

#include <gtest/gtest.h>

namespace comfyd {
namespace {

using State = CircuitBreaker::State;
constexpr Time kNow = Time(Millis(1'700'000'000'000));
constexpr CircuitBreaker::Limits kLimits{3, Millis(1'000), Millis(4'000)};

Time at(int ms) {
    return kNow + Millis(ms);
}

TEST(CircuitBreaker, OpensAfterSoManyFailuresInARow) {
    CircuitBreaker breaker(kLimits);
    EXPECT_FALSE(breaker.failed(at(0), 0));
    EXPECT_FALSE(breaker.failed(at(1), 0));
    EXPECT_EQ(breaker.state(at(1)), State::closed);
    EXPECT_TRUE(breaker.failed(at(2), 0));
    EXPECT_EQ(breaker.state(at(2)), State::open);
    EXPECT_EQ(breaker.wait(at(3)), Millis(999));
}

TEST(CircuitBreaker, ASuccessResetsTheCount) {
    CircuitBreaker breaker(kLimits);
    for (int i = 0; i < 10; ++i) {
        EXPECT_FALSE(breaker.failed(at(i), 0));
        EXPECT_FALSE(breaker.failed(at(i), 0));
        breaker.succeeded();
    }
    EXPECT_EQ(breaker.state(at(20)), State::closed);
}

TEST(CircuitBreaker, HalfOpenOneCallDecides) {
    CircuitBreaker breaker(kLimits);
    breaker.trip(at(0), 0);
    EXPECT_EQ(breaker.state(at(999)), State::open);
    EXPECT_EQ(breaker.state(at(1'000)), State::half_open);
    EXPECT_EQ(breaker.wait(at(1'000)), Millis(0));
    breaker.succeeded();
    EXPECT_EQ(breaker.state(at(1'000)), State::closed);
    breaker.trip(at(2'000), 0);
    EXPECT_TRUE(breaker.failed(at(3'000), 0)) << "one failure is enough then";
    EXPECT_EQ(breaker.state(at(3'000)), State::open);
}

TEST(CircuitBreaker, IsOpenForLongerEachTime) {
    CircuitBreaker breaker(kLimits);
    int now = 0;
    breaker.trip(at(now), 0);
    for (const int rest : {1'000, 2'000, 4'000, 4'000}) {
        EXPECT_EQ(breaker.wait(at(now)), Millis(rest));
        now += rest;
        EXPECT_TRUE(breaker.failed(at(now), 0));
    }
    breaker.succeeded();
    breaker.trip(at(now), 0);
    EXPECT_EQ(breaker.wait(at(now)), Millis(1'000)) << "a success resets that, too";
}

TEST(CircuitBreaker, CallsFromBeforeItOpenedChangeNothing) {
    CircuitBreaker breaker(kLimits);
    breaker.trip(at(0), 0);
    EXPECT_FALSE(breaker.failed(at(500), 0));
    EXPECT_EQ(breaker.wait(at(500)), Millis(500));
}

TEST(CircuitBreaker, ThoseThatOpenTogetherAreAskedApart) {
    CircuitBreaker breaker(kLimits);
    breaker.trip(at(0), 1);
    EXPECT_EQ(breaker.wait(at(0)), Millis(800));
}

}  // namespace
}  // namespace comfyd
