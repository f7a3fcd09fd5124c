#include "events/hub.hpp"

#include <gtest/gtest.h>

namespace comfyd::events {
namespace {

EventPtr event(std::uint64_t sequence, jobs::EventType type, JobId job = {}) {
    auto made = std::make_shared<jobs::Event>();
    made->job = job;
    made->sequence = sequence;
    made->type = type;
    return made;
}

Task<> read_all(
    std::shared_ptr<Subscription> subscription, std::vector<std::uint64_t>& seen, Code& end
) {
    for (;;) {
        auto next = co_await subscription->next(Millis(0));
        if (!next) {
            end = next.error().code;
            co_return;
        }
        seen.push_back((*next)->sequence);
    }
}

struct Reader {
    boost::asio::io_context context;
    TaskGroup tasks{context.get_executor()};
    std::vector<std::uint64_t> seen;
    Code end = Code::internal;

    void drain(const std::shared_ptr<Subscription>& subscription) {
        tasks.spawn("reader", read_all(subscription, seen, end));
        context.restart();
        context.run();
    }
};

TEST(Subscription, PastAndLiveAreJoinedWithoutGapOrRepetition) {
    Reader reader;
    auto subscription =
        std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{});
    subscription->push(event(3, jobs::EventType::started));
    subscription->push(event(4, jobs::EventType::completed));
    subscription->prime({event(1, jobs::EventType::queued), event(3, jobs::EventType::started)});
    reader.drain(subscription);
    EXPECT_EQ(reader.seen, (std::vector<std::uint64_t>{1, 3, 4}));
    EXPECT_EQ(reader.end, Code::request_timeout);
}

TEST(Subscription, ResumesAfterTheGivenSequence) {
    Reader reader;
    WatchOptions options;
    options.since = 3;
    auto subscription = std::make_shared<Subscription>(reader.context.get_executor(), options);
    subscription->prime({event(3, jobs::EventType::started), event(5, jobs::EventType::completed)});
    subscription->end(Code::not_found);
    reader.drain(subscription);
    EXPECT_EQ(reader.seen, (std::vector<std::uint64_t>{5}));
    EXPECT_EQ(reader.end, Code::not_found);
}

TEST(Subscription, OnlyTheLatestProgressIsKept) {
    Reader reader;
    auto subscription =
        std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{});
    subscription->prime({});
    for (std::uint64_t i = 1; i <= 1000; ++i) {
        subscription->push(event(i, jobs::EventType::progress));
    }
    reader.drain(subscription);
    EXPECT_EQ(reader.seen, (std::vector<std::uint64_t>{1000}));
}

TEST(Subscription, PreviewsOnlyForThoseWhoAsk) {
    for (const bool asked : {false, true}) {
        Reader reader;
        WatchOptions options;
        options.previews = asked;
        auto subscription = std::make_shared<Subscription>(reader.context.get_executor(), options);
        subscription->prime({});
        subscription->push(event(1, jobs::EventType::preview));
        reader.drain(subscription);
        EXPECT_EQ(reader.seen.size(), asked ? 1U : 0U);
    }
}

TEST(Subscription, ASlowListenerIsCutOff) {
    Reader reader;
    auto subscription =
        std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{});
    subscription->prime({});
    for (std::uint64_t i = 1; i <= Subscription::kBufferMax + 10; ++i) {
        subscription->push(event(i, jobs::EventType::retrying));
    }
    reader.drain(subscription);
    EXPECT_EQ(reader.seen.size(), Subscription::kBufferMax);
    EXPECT_EQ(reader.end, Code::too_many_streams);
}

TEST(Hub, OnlyListenersOfTheJobHearOfItAndGoneOnesAreForgotten) {
    Reader reader;
    Hub hub(reader.context.get_executor());
    const JobId mine = JobId::make(SystemClock().now());
    const JobId other = JobId::make(SystemClock().now());
    auto subscription =
        std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{});
    subscription->prime({});
    hub.attach(mine, subscription);
    hub.attach(
        other, std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{})
    );
    hub.publish(event(1, jobs::EventType::queued, mine));
    hub.publish(event(1, jobs::EventType::queued, other));
    EXPECT_EQ(hub.job_count(), 1U);
    EXPECT_FALSE(hub.has_listeners(other));
    reader.context.run();
    reader.drain(subscription);
    EXPECT_EQ(reader.seen, (std::vector<std::uint64_t>{1}));
}

TEST(Hub, StreamsThatAreClosedAreNotCountedAndNotKept) {
    Reader reader;
    Hub hub(reader.context.get_executor());
    const auto open = [&] {
        auto made = std::make_shared<Subscription>(reader.context.get_executor(), WatchOptions{});
        hub.attach(JobId::make(SystemClock().now()), made);
        return made;
    };
    std::vector<std::shared_ptr<Subscription>> kept;
    for (int i = 0; i < 100; ++i) {
        kept.push_back(open());
    }
    for (int i = 0; i < 10'000; ++i) {
        open();  // closed at once: its job has ended and tells nothing any more
        ASSERT_EQ(hub.subscription_count(), kept.size());
        ASSERT_LE(hub.job_count(), 2 * kept.size() + Hub::kTidyAtLeast);
    }
    kept.clear();
    EXPECT_EQ(hub.subscription_count(), 0U);
    hub.end_all(Code::shutting_down);
    EXPECT_EQ(hub.job_count(), 0U);
}

}  // namespace
}  // namespace comfyd::events
