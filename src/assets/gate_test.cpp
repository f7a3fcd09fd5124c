#include "assets/gate.hpp"

#include <gtest/gtest.h>

#include "net/test_support.hpp"

namespace comfyd::assets {
namespace {

// How many are inside at once at most, of `count` who come together.
Task<> pass_through(Gate& gate, int& inside, int& most, int& done) {
    auto pass = co_await gate.enter();
    EXPECT_TRUE(pass);
    most = std::max(most, ++inside);
    const bool slept = co_await sleep_for(Millis(1));
    EXPECT_TRUE(slept);
    --inside;
    ++done;
}

Task<int> crowd(Executor executor, Gate& gate, int count) {
    int inside = 0;
    int most = 0;
    int done = 0;
    TaskGroup group(executor);
    for (int i = 0; i < count; ++i) {
        group.spawn("pass", pass_through(gate, inside, most, done));
    }
    co_await group.join();
    EXPECT_EQ(done, count);
    co_return most;
}

TEST(Gate, LetsInFewerAfterARefusalAndSlowlyMoreAgain) {
    net::test::Loop loop;
    Gate gate(loop.executor(), 6);
    EXPECT_EQ(loop.run(crowd(loop.executor(), gate, 20)), 6);
    gate.slow_down();
    EXPECT_EQ(loop.run(crowd(loop.executor(), gate, 20)), 3);
    for (int i = 0; i < 3; ++i) {
        gate.slow_down();
    }
    EXPECT_EQ(loop.run(crowd(loop.executor(), gate, 5)), 1);
    gate.went_well();
    EXPECT_EQ(loop.run(crowd(loop.executor(), gate, 5)), 2);
    for (int i = 0; i < 100; ++i) {
        gate.went_well();
    }
    EXPECT_EQ(loop.run(crowd(loop.executor(), gate, 20)), 6);
}

}  // namespace
}  // namespace comfyd::assets
