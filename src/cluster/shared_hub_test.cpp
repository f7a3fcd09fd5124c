#include "cluster/shared_hub.hpp"

#include <gmock/gmock.h>

#include "cluster/hub_test_support.hpp"
#include "cluster/no_bus.hpp"

namespace comfyd::cluster {
namespace {

using namespace test;
using testing::ElementsAre;

TEST_F(SharedHubTest, AListenerOnAnotherNodeHearsAtOnce) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    change(job);
    show(job);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
    EXPECT_EQ(listener.count(EventType::progress), 1U);
    const std::size_t reads = ledger.reads;
    change(job, EventType::completed);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
    EXPECT_EQ(ledger.reads, reads);  // nothing could be missing
}

TEST_F(SharedHubTest, OutputsAreToldBeforeTheEnd) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    change(job);
    world.settle();
    const auto output = event(job, EventType::output);
    const auto completed = store(job, EventType::completed);
    leader->hub.publish(job, events::Shown{output});
    leader->hub.publish(job, events::Changed{std::make_shared<const jobs::Job>(job), completed, 0});
    world.settle();
    ASSERT_EQ(listener.heard.size(), 4U);
    EXPECT_EQ(listener.heard[2]->type, EventType::output);
    EXPECT_EQ(listener.heard[3]->type, EventType::completed);
}

TEST_F(SharedHubTest, AListenerOnTheLeadersNodeReadsNothing) {
    lead(1);
    auto job = make_job();
    Listener listener(node(1), ledger, job.id);
    change(job);
    show(job);
    change(job, EventType::completed);
    world.pass(Millis(10'000));
    EXPECT_EQ(listener.stored(), stored(job));
    EXPECT_EQ(ledger.reads, 0U);
    EXPECT_EQ(ledger.polls, 0U);
}

TEST_F(SharedHubTest, NobodyAsksTheLedgerForNobody) {
    lead(1);
    node(2);
    world.pass(Millis(60'000));
    EXPECT_EQ(ledger.polls, 0U);
}

TEST_F(SharedHubTest, WhatTheBusLosesIsFoundInTheLedger) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    world.exchange.decide([](const NodeId&, const NodeId&) { return Fate::is_lost; });
    change(job);
    show(job);
    change(job, EventType::completed);
    world.settle();
    EXPECT_THAT(listener.stored(), ElementsAre(1));
    world.pass(SharedHub::kPollEvery);
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, AnEventWaitsForTheOneThatWasLostBeforeIt) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    change(job);
    world.settle();
    world.exchange.decide([](const NodeId&, const NodeId&) { return Fate::is_lost; });
    change(job, EventType::retrying);
    world.settle();
    world.exchange.decide({});
    show(job);  // comes after what the listener has not heard
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
    EXPECT_EQ(listener.count(EventType::progress), 0U);
    show(job);
    world.settle();
    EXPECT_EQ(listener.count(EventType::progress), 1U);
}

TEST_F(SharedHubTest, WhatComesWhileTheLedgerIsReadIsNeitherLostNorTooEarly) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    ledger.takes = Millis(100);
    change(job);
    world.pass(Millis(50));
    change(job, EventType::retrying);
    change(job, EventType::queued);
    world.pass(Millis(300));
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, ALedgerThatFailsIsAskedAgain) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    ledger.is_broken = true;
    change(job);
    world.pass(SharedHub::kPollEvery);
    EXPECT_THAT(listener.stored(), ElementsAre(1));
    ledger.is_broken = false;
    world.pass(SharedHub::kPollEvery);
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, WithoutABusAListenerHearsEverySecond) {
    lead(1);
    auto job = make_job();
    NoBus none(world.executor(), node_id(9));
    Mail mail(world.executor(), none);
    SharedHub hub(world.executor(), mail, ledger, ledger);
    hub.start();
    mail.start();
    const auto subscription = std::make_shared<Subscription>(world.executor(), WatchOptions{});
    hub.watch(job.id, subscription);
    subscription->prime({});
    const auto feed = std::make_shared<Feed>(world.executor(), FeedOptions{});
    hub.subscribe(feed);
    EXPECT_TRUE(feed->take().has_gap);
    change(job);
    world.pass(SharedHub::kPollAloneEvery);
    std::vector<std::uint64_t> heard;
    for (int count = 0; count < 2; ++count) {
        heard.push_back(world.run(subscription->next(Millis(0))).value()->sequence);
    }
    EXPECT_THAT(heard, ElementsAre(1, 2));
    EXPECT_TRUE(feed->take().has_gap);
    world.finish(hub.stop());
    world.finish(mail.stop());
}

TEST_F(SharedHubTest, ProgressIsOnlyWantedWhileSomebodyListens) {
    lead(1);
    auto job = make_job();
    auto other = make_job();
    EXPECT_FALSE(leader->hub.wants_progress(job));
    {
        const Listener listener(node(2), ledger, job.id);
        EXPECT_TRUE(leader->hub.wants_progress(job));
        EXPECT_FALSE(leader->hub.wants_progress(other));
        EXPECT_FALSE(leader->hub.wants_worker_messages(job));
        world.pass(Millis(60'000));
        EXPECT_TRUE(leader->hub.wants_progress(job));
    }
    world.pass(SharedHub::kPollEvery);
    EXPECT_FALSE(leader->hub.wants_progress(job));
}

TEST_F(SharedHubTest, PreviewsAreOnlySentToThoseWhoWantThem) {
    lead(1);
    auto job = make_job();
    const Listener plain(node(2), ledger, job.id);
    Listener seeing(node(3), ledger, job.id, {.previews = true});
    change(job);
    world.settle();
    const auto sent = node(1).bus.counts().sent;
    show(job, EventType::preview);
    world.settle();
    EXPECT_EQ(node(1).bus.counts().sent, sent + 1);
    EXPECT_EQ(seeing.count(EventType::preview), 1U);
}

TEST_F(SharedHubTest, ANodeThatIsGoneCostsNothingAfterAWhile) {
    lead(1);
    auto job = make_job();
    {
        const Listener listener(node(2), ledger, job.id);
        world.exchange.cut_off(node_id(2), true);
        world.pass(Audience::kInterestLife + SharedHub::kPollEvery);
        EXPECT_FALSE(leader->hub.wants_progress(job));
        EXPECT_EQ(leader->hub.audience_size(), 0U);
    }
}

TEST_F(SharedHubTest, ANewLeaderKnowsWhoListens) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    node(3);
    change(job);
    world.settle();
    lead(3);
    EXPECT_TRUE(node(3).hub.wants_progress(job));
    show(job);
    world.settle();
    change(job, EventType::completed);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
    EXPECT_EQ(listener.count(EventType::progress), 1U);
}

TEST_F(SharedHubTest, ANodeThatIsNewIsToldWhoListens) {
    lead(1);
    auto job = make_job();
    const Listener listener(node(2), ledger, job.id);
    lead(4);  // it joins, and leads at once
    EXPECT_TRUE(node(4).hub.wants_progress(job));
}

TEST_F(SharedHubTest, AListenerMissesNothingWhenItsOwnNodeTakesTheLead) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    change(job);
    world.settle();
    world.exchange.cut_off(node_id(2), true);
    change(job, EventType::retrying);  // not heard of
    lead(2);
    change(job, EventType::completed);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
    // From now on everything is published here.
    world.pass(2 * SharedHub::kPollEvery);
    const auto polls = ledger.polls;
    world.pass(10 * SharedHub::kPollEvery);
    EXPECT_EQ(ledger.polls, polls);
}

TEST_F(SharedHubTest, AListenerMissesNothingWhenTheLeadGoesElsewhere) {
    lead(1);
    auto job = make_job();
    Listener listener(node(1), ledger, job.id);
    change(job);
    lead(2);
    change(job, EventType::retrying);
    change(job, EventType::completed);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, WhoLosesTheLeadSaysWhoListensThere) {
    lead(1);
    node(2);
    auto job = make_job();
    Listener listener(node(1), ledger, job.id);
    EXPECT_FALSE(node(2).hub.wants_progress(job));
    lead(2);
    world.settle();
    EXPECT_TRUE(node(2).hub.wants_progress(job));
    change(job);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, TheLeadMayBeLostAndTakenAgainWhileTheLedgerIsRead) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    world.exchange.decide([](const NodeId&, const NodeId&) { return Fate::is_lost; });
    change(job);
    lead(2);
    ledger.takes = Millis(100);
    world.pass(SharedHub::kPollEvery);  // it is being read
    lead(1);
    change(job, EventType::retrying);
    lead(2);
    world.pass(ledger.takes);
    change(job, EventType::completed);
    world.pass(ledger.takes);
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, AStreamGoesOnWhereItWasOnAnotherNode) {
    lead(1);
    auto job = make_job();
    change(job);
    change(job, EventType::retrying);
    Listener listener(node(2), ledger, job.id, {.since = 2});
    change(job, EventType::completed);
    world.settle();
    EXPECT_THAT(listener.stored(), ElementsAre(3, 4));
}

TEST_F(SharedHubTest, OneWhoAsksForTheFutureHidesNothingFromOthers) {
    lead(1);
    auto job = make_job();
    const Listener odd(node(2), ledger, job.id, {.since = 1'000'000});
    Listener listener(node(2), ledger, job.id);
    change(job);
    world.settle();
    EXPECT_EQ(listener.stored(), stored(job));
}

TEST_F(SharedHubTest, AllEnds) {
    lead(1);
    auto job = make_job();
    Listener listener(node(2), ledger, job.id);
    node(2).hub.end_all(Code::shutting_down);
    world.settle();
    EXPECT_TRUE(listener.is_over);
    EXPECT_FALSE(leader->hub.wants_progress(job));
}

// Whatever the bus and the lead do: every listener hears every stored event, once and in order.

}  // namespace
}  // namespace comfyd::cluster
