#include "base/cancellable_hop.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "base/virtual_time.hpp"

namespace comfyd {
namespace {

// Two contexts on one thread: whoever's turn it is can be said.
class CancellableHopTest : public testing::Test {
protected:
    CancellableHopTest()
        : away_time_(away_, Time(Millis(0))), away_work_(away_.get_executor()), group_(home()) {}
    ~CancellableHopTest() override { turn(); }

    Executor home() { return home_.get_executor(); }
    // Everybody goes on until all wait.
    void turn() {
        std::size_t ran = 1;
        while (ran > 0) {
            home_.restart();
            away_.restart();
            ran = away_.poll();
            ran += home_.poll();
        }
    }

    // Waits, and says whether it was let.
    static Task<Result<int>> wait_away(Millis duration) {
        const bool waited = co_await sleep_for(duration);
        if (!waited) {
            co_return fail(Code::cancelled, "not waited");
        }
        co_return 7;
    }
    static Task<Result<int>> give_way_then_ignore(bool& cancelled) {
        co_await sleep_for(Millis(10));
        cancelled = co_await is_cancelled();
        co_return 8;
    }
    static Task<> call(Executor away, Task<Result<int>> task, std::optional<Result<int>>& result) {
        result = co_await await_cancellable_on(away, std::move(task));
    }
    void begin(Task<Result<int>> task) {
        group_.spawn("call", call(away_.get_executor(), std::move(task), result_));
        turn();
    }

    boost::asio::io_context home_;
    boost::asio::io_context away_;
    VirtualTime away_time_;
    boost::asio::executor_work_guard<Executor> away_work_;
    TaskGroup group_;
    std::optional<Result<int>> result_;
};

TEST_F(CancellableHopTest, TheResultComesHome) {
    begin(wait_away(Millis(10)));
    EXPECT_FALSE(result_);
    away_time_.advance_to(Time(Millis(10)));
    turn();
    ASSERT_TRUE(result_);
    EXPECT_EQ(**result_, 7);
}

TEST_F(CancellableHopTest, ACancelledCallerEndsTheWaitAway) {
    begin(wait_away(Millis(10)));
    group_.cancel();
    turn();
    ASSERT_TRUE(result_);
    EXPECT_EQ(result_->error().code, Code::cancelled);
}

TEST_F(CancellableHopTest, TheCallerWaitsForWhateverItsTaskStillDoes) {
    bool cancelled = false;
    begin(give_way_then_ignore(cancelled));
    group_.cancel();
    turn();
    EXPECT_TRUE(cancelled);
    ASSERT_TRUE(result_);
    EXPECT_EQ(**result_, 8);
}

TEST_F(CancellableHopTest, ACancelThatComesAfterTheEndIsNoHarm) {
    begin(wait_away(Millis(10)));
    away_time_.advance_to(Time(Millis(10)));
    away_.restart();
    away_.poll();  // it has ended there, and nobody at home knows
    group_.cancel();
    turn();
    ASSERT_TRUE(result_);
    EXPECT_EQ(**result_, 7);
}

}  // namespace
}  // namespace comfyd
