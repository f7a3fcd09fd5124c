#include "events/subscription.hpp"

#include "events/test_support.hpp"

namespace comfyd::events {
namespace {

using test::event;
using test::Reader;

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

}  // namespace
}  // namespace comfyd::events
