#include "base/stall_watch.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "base/virtual_time.hpp"

namespace comfyd {
namespace {

// One thread is both the watched one and the watching one: work that takes long looks at itself.
class StallWatchTest : public testing::Test {
protected:
    StallWatchTest()
        : time_(context_, Time(Millis(1'000'000))),
          watch_(context_.get_executor(), [this](const Stall& stall) { told_.push_back(stall); }) {
        beat();  // from now on it knows the thread
    }

    void beat() {
        watch_.look();
        context_.restart();
        context_.poll();
    }
    void pass(Millis duration) { time_.advance_to(time_.now() + duration); }
    // Work before a beat that was sent when it began.
    template <class Work>
    void hold_up(Work work) {
        boost::asio::post(context_, work);
        beat();
    }

    boost::asio::io_context context_;
    VirtualTime time_;
    std::vector<Stall> told_;
    StallWatch watch_;
};

TEST_F(StallWatchTest, TellsHowLongAndByWhat) {
    hold_up([this] {
        const NowDoing doing("counting sheep");
        pass(Millis(30));
        watch_.look();
        pass(Millis(20));
    });
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0].length, Millis(50));
    EXPECT_STREQ(told_[0].doing, "counting sheep");
}

TEST_F(StallWatchTest, ShortDelaysAreNotTold) {
    hold_up([this] { pass(StallWatch::kShortest - Millis(1)); });
    EXPECT_TRUE(told_.empty());
    hold_up([this] { pass(StallWatch::kShortest); });
    EXPECT_EQ(told_.size(), 1U);
}

TEST_F(StallWatchTest, WhatEndedBeforeTheLookIsNotBlamed) {
    hold_up([this] {
        {
            const NowDoing doing("something short");
        }
        pass(Millis(30));
        watch_.look();
    });
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_STREQ(told_[0].doing, "");
}

TEST_F(StallWatchTest, WithinOtherWorkTheInnermostIsNamed) {
    hold_up([this] {
        const NowDoing doing("placing jobs");
        {
            const NowDoing within("reading a file");
            pass(Millis(30));
            watch_.look();
        }
        pass(Millis(1));
    });
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_STREQ(told_[0].doing, "reading a file");
}

TEST_F(StallWatchTest, ALaterStallIsNotBlamedOnAnEarlierOne) {
    hold_up([this] {
        const NowDoing doing("placing jobs");
        pass(Millis(30));
        watch_.look();
    });
    hold_up([this] { pass(Millis(40)); });
    ASSERT_EQ(told_.size(), 2U);
    EXPECT_STREQ(told_[1].doing, "");
}

TEST_F(StallWatchTest, AStoppedOneTellsNothing) {
    hold_up([this] {
        pass(Millis(30));
        watch_.stop();
    });
    EXPECT_TRUE(told_.empty());
}

TEST(StallWatchThread, BeatsUntilItIsStopped) {
    boost::asio::io_context context;
    const auto until_a_beat_comes = boost::asio::make_work_guard(context);
    StallWatch watch(context.get_executor(), [](const Stall&) {});
    watch.start();
    EXPECT_EQ(context.run_one(), 1U);  // a beat
    watch.stop();
}

}  // namespace
}  // namespace comfyd
