#include "base/task.hpp"

#include <gtest/gtest.h>

#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "base/hop.hpp"
#include "base/pool.hpp"
#include "base/virtual_time.hpp"

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

Task<> join_or_cancel(TaskGroup& group, bool& joined) {
    co_await group.join_or_cancel();
    joined = true;
}

TEST(TaskGroup, OnlyWhoJoinsOrCancelsPassesItsCancellationOn) {
    boost::asio::io_context context;
    TaskGroup group(context.get_executor());
    TaskGroup joiners(context.get_executor());
    bool ran_out = true;
    bool joined = false;
    group.spawn("sleeper", sleep_long(ran_out));
    joiners.spawn("joiner", join(group, joined));
    context.poll();
    joiners.cancel();
    context.poll();
    EXPECT_FALSE(joined);
    EXPECT_EQ(group.size(), 1U);
    bool has_cancelled = false;
    joiners.spawn("canceller", join_or_cancel(group, has_cancelled));
    context.run();
    EXPECT_FALSE(ran_out);
    EXPECT_TRUE(joined);
    EXPECT_TRUE(has_cancelled);
}

Task<> sleep_and_tell(Millis duration, std::vector<Millis>& told) {
    const bool ran_out = co_await sleep_for(duration);
    if (ran_out) {
        told.push_back(duration);
    }
}

Task<> wait_and_tell(Signal& signal, Millis duration, std::vector<bool>& notified) {
    const bool was_notified = co_await signal.wait_for(duration);
    notified.push_back(was_notified);
}

TEST(VirtualTime, WhoWaitsGoesOnWhenItIsMoved) {
    boost::asio::io_context context;
    const auto keep = boost::asio::make_work_guard(context);
    VirtualTime time(context, Time(Millis(1'000)));
    TaskGroup group(context.get_executor());
    std::vector<Millis> told;
    for (const int ms : {300, 100, 200}) {
        group.spawn("sleeper", sleep_and_tell(Millis(ms), told));
    }
    context.poll();
    EXPECT_EQ(time.next(), Time(Millis(1'100)));
    time.advance_to(Time(Millis(1'250)));
    context.poll();
    EXPECT_EQ(told, (std::vector{Millis(100), Millis(200)}));
    EXPECT_EQ(time.now(), Time(Millis(1'250)));
    group.cancel();
    context.poll();
    EXPECT_EQ(told.size(), 2U);
    EXPECT_FALSE(time.next());
}

TEST(VirtualTime, ASignalEndsAWaitBeforeItsTime) {
    boost::asio::io_context context;
    const auto keep = boost::asio::make_work_guard(context);
    VirtualTime time(context, Time(Millis(0)));
    TaskGroup group(context.get_executor());
    Signal signal(context.get_executor());
    std::vector<bool> notified;
    group.spawn("short", wait_and_tell(signal, Millis(10), notified));
    group.spawn("long", wait_and_tell(signal, Millis(20), notified));
    context.poll();
    time.advance_to(Time(Millis(10)));
    context.poll();
    signal.notify();
    context.poll();
    EXPECT_EQ(notified, (std::vector{false, true}));
    EXPECT_FALSE(time.next());
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
