#include "base/task.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/hop.hpp"
#include "base/pool.hpp"

namespace comfyd {
namespace {

Task<> wait_until_told(Signal& signal, int& woken) {
    const bool told = co_await signal.wait();
    woken += told ? 1 : 0;
}

Task<> sleep_long(bool& ran_out) {
    ran_out = co_await sleep_for(std::chrono::hours(1));
    // A second wait after the cancellation must not wait either.
    const bool again = co_await sleep_for(std::chrono::hours(1));
    ran_out = ran_out || again;
}

Task<> throw_something() {
    co_await sleep_for(Millis(0));
    throw std::runtime_error("expected by the test");
}

Task<> join(TaskGroup& group, bool& joined) {
    co_await group.join();
    joined = true;
}

TEST(TaskGroup, CancelEndsWaitsAndJoinReturns) {
    boost::asio::io_context context;
    TaskGroup group(context.get_executor());
    TaskGroup other(context.get_executor());
    bool ran_out = true;
    bool joined = false;
    group.spawn("sleeper", sleep_long(ran_out));
    group.spawn("thrower", throw_something());
    other.spawn("joiner", join(group, joined));
    boost::asio::post(context, [&] { group.cancel(); });
    context.run();
    EXPECT_FALSE(ran_out);
    EXPECT_TRUE(joined);
    EXPECT_EQ(group.size(), 0U);
}

TEST(Signal, NotifyWakesAllWhoWait) {
    boost::asio::io_context context;
    TaskGroup group(context.get_executor());
    Signal signal(context.get_executor());
    int woken = 0;
    group.spawn("a", wait_until_told(signal, woken));
    group.spawn("b", wait_until_told(signal, woken));
    boost::asio::post(context, [&] { signal.notify(); });
    context.run();
    EXPECT_EQ(woken, 2);
}

Task<> compute(Pool& pool, std::thread::id& worker, std::thread::id& home, int& result) {
    result = co_await pool.run([&worker] {
        worker = std::this_thread::get_id();
        return 42;
    });
    home = std::this_thread::get_id();
}

TEST(Pool, WorkRunsElsewhereAndTheCallerGoesOnAtHome) {
    boost::asio::io_context context;
    TaskGroup group(context.get_executor());
    Pool pool(1);
    std::thread::id worker;
    std::thread::id home;
    int result = 0;
    group.spawn("compute", compute(pool, worker, home, result));
    context.run();
    EXPECT_EQ(result, 42);
    EXPECT_TRUE(home == std::this_thread::get_id());
    EXPECT_TRUE(worker != home);
}

}  // namespace
}  // namespace comfyd
