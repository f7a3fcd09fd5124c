#include "events/feed.hpp"

#include <thread>

#include "events/test_support.hpp"

namespace comfyd::events {
namespace {

using test::change;
using test::event;
using test::job_of;
using test::message;
using test::progress;

std::uint64_t number_of(const Notice& notice) {
    if (const auto* changed = std::get_if<Changed>(&notice)) {
        return changed->event->sequence;
    }
    const auto* shown = std::get_if<Shown>(&notice);
    return shown != nullptr ? shown->event->sequence : 0;
}

class FeedTest : public testing::Test {
protected:
    static Task<> read(std::shared_ptr<Feed> feed, std::vector<Feed::Batch>& batches, Code& end) {
        for (;;) {
            auto batch = co_await feed->next();
            if (!batch) {
                end = batch.error().code;
                co_return;
            }
            batches.push_back(std::move(*batch));
        }
    }
    std::shared_ptr<Feed> make(std::size_t waiting_max) {
        FeedOptions options;
        options.waiting_max = waiting_max;
        return std::make_shared<Feed>(context_.get_executor(), std::move(options));
    }
    void listen(const std::shared_ptr<Feed>& feed) {
        tasks_.spawn("listener", read(feed, batches_, end_));
        context_.poll();
    }
    static std::vector<std::uint64_t> numbers(const std::vector<Notice>& notices) {
        std::vector<std::uint64_t> numbers;
        for (const Notice& notice : notices) {
            numbers.push_back(number_of(notice));
        }
        return numbers;
    }
    using Numbers = std::vector<std::uint64_t>;

    boost::asio::io_context context_;
    TaskGroup tasks_{context_.get_executor()};
    std::vector<Feed::Batch> batches_;
    Code end_ = Code::internal;
    const jobs::Job job_ = job_of("mine");
};

TEST_F(FeedTest, WhatComesAtOnceIsOneBatchInItsOrder) {
    const auto feed = make(100);
    listen(feed);
    feed->push(change(job_, 1));
    feed->push(progress(job_, 2));
    feed->push(change(job_, 3));
    context_.poll();
    feed->push(change(job_, 4));
    context_.poll();
    ASSERT_EQ(batches_.size(), 2U);
    EXPECT_EQ(numbers(batches_[0].notices), (Numbers{1, 2, 3}));
    EXPECT_EQ(numbers(batches_[1].notices), (Numbers{4}));
    feed->end(Code::shutting_down);
    context_.run();
}

TEST_F(FeedTest, AListenerIsWokenOnceForAllThatComesUntilItLooks) {
    const auto feed = make(100);
    listen(feed);
    for (std::uint64_t i = 1; i <= 50; ++i) {
        feed->push(change(job_, i));
    }
    // The wake, and the listener that goes on.
    EXPECT_LE(context_.poll(), 3U);
    ASSERT_EQ(batches_.size(), 1U);
    feed->end(Code::shutting_down);
    context_.run();
}

TEST_F(FeedTest, OneWithoutACoroutineIsCalledOnceUntilItTakes) {
    const auto feed = make(100);
    int calls = 0;
    feed->on_told([&calls] { ++calls; });
    feed->push(change(job_, 1));
    feed->push(change(job_, 2));
    context_.poll();
    feed->push(change(job_, 3));
    context_.restart();
    context_.poll();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(numbers(feed->take().notices), (Numbers{1, 2, 3}));
    feed->push(change(job_, 4));
    context_.restart();
    context_.poll();
    EXPECT_EQ(calls, 2);
}

TEST_F(FeedTest, OneForWhomNobodyWaitsIsWokenForManyAtOnce) {
    const auto feed = make(100);
    feed->wake_at(3);
    listen(feed);
    feed->push(change(job_, 1));
    feed->push(change(job_, 2));
    context_.poll();
    EXPECT_TRUE(batches_.empty());
    feed->push(change(job_, 3));
    context_.poll();
    ASSERT_EQ(batches_.size(), 1U);
    EXPECT_EQ(batches_[0].notices.size(), 3U);
    feed->end(Code::shutting_down);
    context_.run();
}

// Something comes between the last look and the moment from which each is told at once.
TEST_F(FeedTest, OneThatWantsEachFromNowOnIsWokenForWhatWaits) {
    const auto feed = make(100);
    int calls = 0;
    feed->on_told([&calls] { ++calls; });
    feed->wake_at(64);
    feed->push(change(job_, 1));
    context_.poll();
    EXPECT_EQ(calls, 0);
    feed->wake_at(1);
    context_.restart();
    context_.poll();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(feed->take().notices.size(), 1U);
    feed->wake_at(1);
    context_.restart();
    context_.poll();
    EXPECT_EQ(calls, 1) << "nothing waits";
    feed->wake_at(64);
    feed->tell_gap();
    feed->wake_at(1);
    context_.restart();
    context_.poll();
    EXPECT_EQ(calls, 2) << "nor is a gap forgotten";
}

TEST_F(FeedTest, OneSaysWhenItHasSomebodyToTell) {
    const auto feed = make(100);
    int awoken = 0;
    feed->on_awake([&awoken] { ++awoken; });
    EXPECT_TRUE(feed->is_awake());
    feed->wake_at(64);
    EXPECT_FALSE(feed->is_awake());
    feed->tell_gap();
    listen(feed);
    EXPECT_TRUE(batches_.at(0).has_gap);  // it looked
    feed->wake_at(1);
    feed->wake_at(1);
    EXPECT_EQ(awoken, 1);
    feed->end(Code::shutting_down);
    context_.run();
}

TEST_F(FeedTest, OneWhoFallsBehindLosesFirstWhatIsNotStored) {
    const auto feed = make(4);
    feed->push(change(job_, 1));
    for (std::uint64_t i = 2; i <= 10; ++i) {
        feed->push(progress(job_, i));
    }
    feed->push(change(job_, 11));
    feed->push(message(job_, "executing"));
    listen(feed);
    ASSERT_EQ(batches_.size(), 1U);
    EXPECT_FALSE(batches_[0].has_gap);
    EXPECT_EQ(numbers(batches_[0].notices), (Numbers{1, 10, 11, 0}));
    feed->end(Code::shutting_down);
    context_.run();
}

TEST_F(FeedTest, PicturesThatWaitAreBoundedInBytes) {
    const auto feed = make(1'000);
    for (std::uint64_t i = 1; i <= 6; ++i) {
        auto preview = event(i, jobs::EventType::preview, job_.id);
        preview->preview = std::string(Feed::kUnstoredBytesMax / 4, 'x');
        feed->push(Shown{std::move(preview)});
    }
    EXPECT_EQ(numbers(feed->take().notices), (Numbers{5, 6}));
}

TEST_F(FeedTest, MessagesThatWaitAreBoundedInBytes) {
    const auto feed = make(1'000);
    for (int i = 0; i < 6; ++i) {
        Said said = message(job_, "executed");
        said.message.data["text"] = std::string(Feed::kUnstoredBytesMax / 4, 'x');
        feed->push(std::move(said));
    }
    EXPECT_EQ(feed->take().notices.size(), 3U);
}

TEST_F(FeedTest, OneWhoMissesStoredChangesIsToldAndGoesOnAfterTheGap) {
    const auto feed = make(4);
    for (std::uint64_t i = 1; i <= 6; ++i) {
        feed->push(change(job_, i));
    }
    listen(feed);
    feed->push(change(job_, 7));
    context_.poll();
    ASSERT_EQ(batches_.size(), 2U);
    EXPECT_TRUE(batches_[0].has_gap);
    EXPECT_EQ(numbers(batches_[0].notices), (Numbers{5, 6}));
    EXPECT_FALSE(batches_[1].has_gap);
    EXPECT_EQ(numbers(batches_[1].notices), (Numbers{7}));
    feed->end(Code::shutting_down);
    context_.run();
}

TEST_F(FeedTest, AGapThatOthersNoticedIsToldOnce) {
    const auto feed = make(100);
    listen(feed);
    feed->tell_gap();
    feed->tell_gap();
    feed->push(change(job_, 1));
    context_.poll();
    ASSERT_EQ(batches_.size(), 1U);
    EXPECT_TRUE(batches_[0].has_gap);
    EXPECT_EQ(numbers(batches_[0].notices), (Numbers{1}));
    feed->push(change(job_, 2));
    feed->end(Code::shutting_down);
    context_.run();
    ASSERT_EQ(batches_.size(), 2U);
    EXPECT_FALSE(batches_[1].has_gap);
}

TEST_F(FeedTest, TheEndComesAfterWhatWaits) {
    const auto feed = make(4);
    feed->push(change(job_, 1));
    feed->end(Code::shutting_down);
    feed->push(change(job_, 2));
    listen(feed);
    ASSERT_EQ(batches_.size(), 1U);
    EXPECT_EQ(numbers(batches_[0].notices), (Numbers{1}));
    EXPECT_EQ(end_, Code::shutting_down);
}

TEST_F(FeedTest, AListenerWhoWaitsIsWokenByTheEnd) {
    const auto feed = make(4);
    listen(feed);
    EXPECT_EQ(end_, Code::internal);
    feed->end(Code::shutting_down);
    context_.poll();
    EXPECT_EQ(end_, Code::shutting_down);
}

TEST_F(FeedTest, AListenerCanBeCancelled) {
    const auto feed = make(4);
    listen(feed);
    tasks_.cancel();
    context_.poll();
    EXPECT_EQ(end_, Code::cancelled);
}

// A listener on a thread of its own, with room for little: it is told of every gap, and what it
// hears between two gaps is whole.
TEST_F(FeedTest, WhatIsPushedOnOtherThreadsIsWholeButForTheGaps) {
    constexpr std::uint64_t kChanges = 20'000;
    const auto feed = make(64);
    tasks_.spawn("listener", read(feed, batches_, end_));
    std::thread listener([this] { context_.run(); });
    for (std::uint64_t i = 1; i <= kChanges; ++i) {
        feed->push(change(job_, i));
        feed->push(message(job_, "executing"));
    }
    feed->end(Code::shutting_down);
    listener.join();
    EXPECT_EQ(end_, Code::shutting_down);
    std::uint64_t last = 0;
    for (const Feed::Batch& batch : batches_) {
        bool may_jump = batch.has_gap;
        for (const Notice& notice : batch.notices) {
            if (const std::uint64_t number = number_of(notice); number > 0) {
                ASSERT_TRUE(number == last + 1 || (may_jump && number > last));
                last = number;
                may_jump = false;
            }
        }
    }
    EXPECT_EQ(last, kChanges);
}

Task<> wait_for_nothing(std::shared_ptr<Feed> feed, Code& end) {
    auto batch = co_await feed->next(Millis(0));
    end = batch ? Code::internal : batch.error().code;
}

TEST_F(FeedTest, PatienceEnds) {
    tasks_.spawn("listener", wait_for_nothing(make(4), end_));
    context_.run();
    EXPECT_EQ(end_, Code::request_timeout);
}

}  // namespace
}  // namespace comfyd::events
