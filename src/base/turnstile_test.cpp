#include "base/turnstile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <boost/asio/co_spawn.hpp>

namespace comfyd {
namespace {

using testing::ElementsAre;

class TurnstileTest : public testing::Test {
protected:
    // Comes with `name` for `key`, and stays inside until leave(name).
    void come(Turnstile& turnstile, std::string key, int name) {
        tasks_.spawn("visitor", visit(turnstile, std::move(key), name));
        run();
    }
    void leave(int name) {
        leaving_.push_back(name);
        somebody_leaves_.notify();
        run();
    }
    void run() {
        context_.restart();
        context_.poll();
    }

    boost::asio::io_context context_;
    TaskGroup tasks_{context_.get_executor()};
    Signal somebody_leaves_{context_.get_executor()};
    std::vector<int> entered_;
    std::vector<int> refused_;
    std::vector<int> cancelled_;
    std::vector<int> leaving_;

private:
    Task<> visit(Turnstile& turnstile, std::string key, int name) {
        auto pass = co_await turnstile.enter(std::move(key));
        if (!pass) {
            (pass.error().code == Code::queue_full ? refused_ : cancelled_).push_back(name);
            co_return;
        }
        entered_.push_back(name);
        while (std::ranges::find(leaving_, name) == leaving_.end()) {
            const bool goes_on = co_await somebody_leaves_.wait();
            if (!goes_on) {
                co_return;
            }
        }
    }
};

TEST_F(TurnstileTest, LetsSoManyInForEachKeyAndTheRestInOrder) {
    Turnstile turnstile({.inside_max = 2, .waiting_max = 2});
    for (const int name : {1, 2, 3, 4, 5}) {
        come(turnstile, "a", name);
    }
    come(turnstile, "b", 6);
    EXPECT_THAT(entered_, ElementsAre(1, 2, 6));
    EXPECT_THAT(refused_, ElementsAre(5));
    leave(2);
    EXPECT_THAT(entered_, ElementsAre(1, 2, 6, 3));
    leave(1);
    leave(3);
    leave(4);
    EXPECT_THAT(entered_, ElementsAre(1, 2, 6, 3, 4));
    come(turnstile, "a", 7);
    come(turnstile, "a", 8);
    EXPECT_THAT(entered_, ElementsAre(1, 2, 6, 3, 4, 7, 8));
    leave(6);
    leave(7);
    leave(8);
    EXPECT_EQ(tasks_.size(), 0U);
}

TEST_F(TurnstileTest, WhoGivesUpIsPassedOver) {
    Turnstile turnstile({.inside_max = 1, .waiting_max = 8});
    come(turnstile, "a", 1);
    TaskGroup impatient(context_.get_executor());
    bool was_cancelled = false;
    impatient.spawn("impatient", [](Turnstile& turn, bool& told) -> Task<> {
        auto pass = co_await turn.enter("a");
        told = !pass && pass.error().code == Code::cancelled;
    }(turnstile, was_cancelled));
    run();
    come(turnstile, "a", 3);
    impatient.cancel();
    run();
    EXPECT_TRUE(was_cancelled);
    leave(1);
    EXPECT_THAT(entered_, ElementsAre(1, 3));
    leave(3);
    EXPECT_EQ(tasks_.size(), 0U);
}

}  // namespace
}  // namespace comfyd
