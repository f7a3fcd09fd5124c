#include "cluster/hub_test_support.hpp"

namespace comfyd::cluster {
namespace {

using namespace test;

TEST_F(SharedHubTest, AFeedOnAnotherNodeHearsOfItsTenantsJobs) {
    lead(1);
    auto mine = make_job("mine");
    auto other = make_job("other");
    FeedOptions options;
    options.tenant = "mine";
    options.progress = true;
    options.messages_of = "native";
    const auto feed = subscribe(2, options);
    feed->take();
    EXPECT_TRUE(leader->hub.wants_progress(mine));
    EXPECT_TRUE(leader->hub.wants_worker_messages(mine));
    EXPECT_FALSE(leader->hub.wants_worker_messages(other));
    leader->hub.publish(mine, events::Arrived{std::make_shared<const jobs::Job>(mine), {}, 3});
    change(other);
    change(mine);
    show(mine);
    leader->hub.publish(mine, events::Said{mine.id, {"executing", {{"node", "4"}}, "bytes", ""}});
    world.settle();
    const auto batch = feed->take();
    EXPECT_FALSE(batch.has_gap);
    ASSERT_EQ(batch.notices.size(), 4U);
    EXPECT_EQ(std::get<events::Arrived>(batch.notices[0]).unfinished, 3U);
    const auto& changed = std::get<events::Changed>(batch.notices[1]);
    EXPECT_EQ(changed.job->revision, mine.revision);
    EXPECT_EQ(changed.event->sequence, 2U);
    EXPECT_EQ(std::get<events::Said>(batch.notices[3]).message.bytes, "bytes");
}

TEST_F(SharedHubTest, AFeedIsToldOfWhatWasLostToIt) {
    lead(1);
    auto job = make_job();
    const auto feed = subscribe(2);
    world.pass(SharedHub::kPollEvery);
    EXPECT_TRUE(feed->take().has_gap);  // what was before
    change(job);
    world.pass(10 * SharedHub::kPollEvery);
    EXPECT_FALSE(feed->take().has_gap);

    world.exchange.decide([](const NodeId&, const NodeId&) { return Fate::is_lost; });
    change(job, EventType::retrying);
    world.settle();
    world.exchange.decide({});
    change(job, EventType::queued);
    world.settle();
    EXPECT_TRUE(feed->take().has_gap);

    // The last one, too.
    world.exchange.decide([](const NodeId&, const NodeId&) { return Fate::is_lost; });
    change(job, EventType::started);
    world.settle();
    world.exchange.decide({});
    EXPECT_FALSE(feed->take().has_gap);
    world.pass(SharedHub::kPollEvery);
    EXPECT_TRUE(feed->take().has_gap);
    world.pass(SharedHub::kPollEvery);
    EXPECT_FALSE(feed->take().has_gap);
}

TEST_F(SharedHubTest, AFeedIsToldOfAGapWhenTheBusWasDown) {
    lead(1);
    const auto feed = subscribe(2);
    world.pass(SharedHub::kPollEvery);
    feed->take();
    world.exchange.cut_off(node_id(2), true);
    world.pass(SharedHub::kPollEvery);
    EXPECT_TRUE(feed->take().has_gap);
    world.exchange.cut_off(node_id(2), false);
    world.settle();
    EXPECT_TRUE(feed->take().has_gap);
    world.pass(5 * SharedHub::kPollEvery);
    EXPECT_FALSE(feed->take().has_gap);
}

TEST_F(SharedHubTest, AFeedIsToldOfAGapWhileTheLeaderIsCutOff) {
    lead(1);
    const auto feed = subscribe(2);
    world.pass(SharedHub::kPollEvery);
    feed->take();
    world.exchange.cut_off(node_id(1), true);
    world.pass(SharedHub::kSilenceMax + SharedHub::kPollEvery);
    EXPECT_TRUE(feed->take().has_gap);
    world.pass(SharedHub::kPollEvery);
    EXPECT_TRUE(feed->take().has_gap);
}

TEST_F(SharedHubTest, AFeedThatHasNobodyToTellCostsOthersNothing) {
    lead(1);
    auto job = make_job();
    const auto feed = subscribe(2);
    feed->wake_at(64);
    world.pass(SharedHub::kPollEvery);
    const auto sent = node(1).bus.counts().sent;
    change(job);
    world.settle();
    EXPECT_EQ(node(1).bus.counts().sent, sent);
    world.pass(SharedHub::kPollEvery);
    const auto batch = feed->take();
    EXPECT_TRUE(batch.has_gap);
    EXPECT_TRUE(batch.notices.empty());

    feed->wake_at(1);
    world.settle();
    EXPECT_TRUE(feed->take().has_gap);  // what was before others knew of it
    change(job, EventType::completed);
    world.settle();
    const auto next = feed->take();
    EXPECT_FALSE(next.has_gap);
    EXPECT_EQ(next.notices.size(), 1U);
}

TEST_F(SharedHubTest, AFeedOnTheLeadersNodeHasNoGaps) {
    lead(1);
    auto job = make_job();
    const auto feed = subscribe(1);
    node(2);
    change(job);
    world.pass(Millis(30'000));
    const auto batch = feed->take();
    EXPECT_FALSE(batch.has_gap);
    EXPECT_EQ(batch.notices.size(), 1U);
}

}  // namespace
}  // namespace comfyd::cluster
