#include "events/local_hub.hpp"

#include "events/test_support.hpp"

namespace comfyd::events {
namespace {

using test::event;
using test::job_of;
using test::Reader;

class LocalHubTest : public testing::Test {
protected:
    std::shared_ptr<Feed> subscribe(FeedOptions options = {}) {
        auto feed = std::make_shared<Feed>(reader_.context.get_executor(), std::move(options));
        hub_.subscribe(feed);
        return feed;
    }
    std::shared_ptr<Feed> subscribe(const std::string& tenant) {
        FeedOptions options;
        options.tenant = tenant;
        return subscribe(std::move(options));
    }

    Reader reader_;
    LocalHub hub_{reader_.context.get_executor()};
    const jobs::Job mine_ = job_of("mine");
    const jobs::Job other_ = job_of("other");
};

TEST_F(LocalHubTest, OnlyListenersOfTheJobHearOfItAndGoneOnesAreForgotten) {
    auto subscription =
        std::make_shared<Subscription>(reader_.context.get_executor(), WatchOptions{});
    subscription->prime({});
    hub_.watch(mine_.id, subscription);
    hub_.watch(
        other_.id, std::make_shared<Subscription>(reader_.context.get_executor(), WatchOptions{})
    );
    hub_.publish(mine_, test::change(mine_, 1));
    hub_.publish(other_, test::change(other_, 1));
    EXPECT_EQ(hub_.job_count(), 1U);
    EXPECT_TRUE(hub_.wants_progress(mine_));
    EXPECT_FALSE(hub_.wants_progress(other_));
    reader_.context.run();
    reader_.drain(subscription);
    EXPECT_EQ(reader_.seen, (std::vector<std::uint64_t>{1}));
}

TEST_F(LocalHubTest, StreamsThatAreClosedAreNotCountedAndNotKept) {
    const auto open = [&] {
        auto made = std::make_shared<Subscription>(reader_.context.get_executor(), WatchOptions{});
        hub_.watch(JobId::make(SystemClock().now()), made);
        return made;
    };
    std::vector<std::shared_ptr<Subscription>> kept;
    for (int i = 0; i < 100; ++i) {
        kept.push_back(open());
    }
    for (int i = 0; i < 10'000; ++i) {
        open();  // closed at once: its job has ended and tells nothing any more
        ASSERT_EQ(hub_.subscription_count(), kept.size());
        ASSERT_LE(hub_.job_count(), 2 * kept.size() + LocalHub::kTidyAtLeast);
    }
    kept.clear();
    EXPECT_EQ(hub_.subscription_count(), 0U);
    hub_.end_all(Code::shutting_down);
    EXPECT_EQ(hub_.job_count(), 0U);
}

TEST_F(LocalHubTest, OneWhoSubscribesToATenantHearsOfNoOther) {
    const auto feed = subscribe("mine");
    const auto all = subscribe();
    hub_.publish(mine_, test::change(mine_, 1));
    hub_.publish(other_, test::change(other_, 1));
    hub_.publish(other_, Arrived{std::make_shared<const jobs::Job>(other_)});
    const auto heard = feed->take().notices;
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(std::get<Changed>(heard[0]).job->id, mine_.id);
    EXPECT_EQ(all->take().notices.size(), 3U);
}

TEST_F(LocalHubTest, WhatIsNotStoredIsOnlyToldToThoseWhoAskForIt) {
    FeedOptions options;
    const auto plain = subscribe(options);
    EXPECT_FALSE(hub_.wants_progress(mine_));
    options.progress = true;
    const auto with_progress = subscribe(options);
    options.previews = true;
    const auto with_previews = subscribe(options);
    EXPECT_TRUE(hub_.wants_progress(mine_));
    for (const auto type :
         {jobs::EventType::progress, jobs::EventType::preview, jobs::EventType::output}) {
        hub_.publish(mine_, Shown{event(1, type, mine_.id)});
    }
    EXPECT_EQ(plain->take().notices.size(), 0U);
    EXPECT_EQ(with_progress->take().notices.size(), 2U);
    EXPECT_EQ(with_previews->take().notices.size(), 3U);
}

TEST_F(LocalHubTest, WorkersMessagesAreOnlyWantedWhereSomebodyAskedForThem) {
    const jobs::Job native = job_of("mine", "comfyui");
    const jobs::Job of_other = job_of("other", "comfyui");
    const auto plain = subscribe();
    EXPECT_FALSE(hub_.wants_worker_messages(native));
    FeedOptions options;
    options.tenant = "mine";
    options.messages_of = "comfyui";
    auto feed = subscribe(options);
    EXPECT_TRUE(hub_.wants_worker_messages(native));
    EXPECT_FALSE(hub_.wants_worker_messages(mine_));
    EXPECT_FALSE(hub_.wants_worker_messages(of_other));
    for (const jobs::Job& job : {native, mine_, of_other}) {
        hub_.publish(job, test::message(job, "executing"));
    }
    const auto heard = feed->take().notices;
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(std::get<Said>(heard[0]).job, native.id);
    EXPECT_EQ(plain->take().notices.size(), 0U);
    reader_.context.poll();  // nobody is waking it any more
    feed.reset();
    EXPECT_FALSE(hub_.wants_worker_messages(native));
}

TEST_F(LocalHubTest, AllWhoSubscribeHearTheSame) {
    FeedOptions options;
    options.messages_of = mine_.dialect;
    const auto one = subscribe(options);
    options.tenant = mine_.tenant;
    const auto two = subscribe(options);
    hub_.publish(mine_, test::message(mine_, "executing"));
    for (const auto& feed : {one, two}) {
        const auto heard = feed->take().notices;
        ASSERT_EQ(heard.size(), 1U);
        EXPECT_EQ(std::get<Said>(heard[0]).message.type, "executing");
    }
}

TEST_F(LocalHubTest, AGapIsToldToAllFeeds) {
    const auto all = subscribe();
    const auto one = subscribe("mine");
    hub_.tell_gap();
    EXPECT_TRUE(all->take().has_gap);
    EXPECT_TRUE(one->take().has_gap);
    EXPECT_FALSE(one->take().has_gap);
}

TEST_F(LocalHubTest, TenantsWithoutSubscribersAreNotKept) {
    for (int i = 0; i < 10'000; ++i) {
        subscribe(std::to_string(i));
        ASSERT_LE(hub_.tenant_count(), LocalHub::kTidyAtLeast);
    }
}

TEST_F(LocalHubTest, WhenAllEndsWhatWasToldIsStillHeard) {
    const auto feed = subscribe();
    hub_.publish(mine_, test::change(mine_, 1));
    hub_.end_all(Code::shutting_down);
    hub_.publish(mine_, test::change(mine_, 2));
    EXPECT_EQ(feed->take().notices.size(), 1U);
}

}  // namespace
}  // namespace comfyd::events
