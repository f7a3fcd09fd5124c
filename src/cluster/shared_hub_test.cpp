#include "cluster/shared_hub.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cluster/no_bus.hpp"
#include "cluster/test_support.hpp"

namespace comfyd::cluster {
namespace {

using events::Feed;
using events::FeedOptions;
using events::Subscription;
using events::WatchOptions;
using Fate = LocalExchange::Fate;
using jobs::EventType;
using test::node_id;
using testing::ElementsAre;
using testing::IsEmpty;

// The events that nodes share, and nothing else of a ledger.
class EventLedger final : public jobs::Ledger, public jobs::SharedLedger {
public:
    std::map<JobId, std::vector<jobs::Event>> stored;
    std::size_t reads = 0;
    std::size_t polls = 0;
    bool is_broken = false;
    Millis takes{0};

    Task<Result<std::vector<jobs::Event>>> events(JobId id, std::uint64_t after) override {
        ++reads;
        std::vector<jobs::Event> found;
        for (const jobs::Event& event : stored[id]) {
            if (event.sequence > after) {
                found.push_back(event);
            }
        }
        if (takes.count() > 0) {
            co_await sleep_for(takes);
        }
        if (is_broken) {
            co_return fail(Code::storage_unavailable, "broken");
        }
        co_return found;
    }
    Task<Result<std::vector<JobId>>> advanced(std::vector<jobs::Heard> heard) override {
        ++polls;
        if (is_broken) {
            co_return fail(Code::storage_unavailable, "broken");
        }
        std::vector<JobId> more;
        for (const jobs::Heard& one : heard) {
            const auto& events = stored[one.job];
            if (!events.empty() && events.back().sequence > one.sequence) {
                more.push_back(one.job);
            }
        }
        co_return more;
    }

    // clang-format off
    Task<Result<jobs::Accepted>> accept(jobs::NewJob) override { return no<jobs::Accepted>(); }
    Task<Result<jobs::Accepted>> find_key(std::string, std::string) override { return no<jobs::Accepted>(); }
    Task<Result<std::optional<jobs::Job>>> find_reusable(std::string, std::string) override { return no<std::optional<jobs::Job>>(); }
    Task<Result<>> commit(jobs::Change) override { return no<void>(); }
    Task<Result<std::optional<jobs::Job>>> find(JobId) override { return no<std::optional<jobs::Job>>(); }
    Task<Result<std::optional<jobs::Spec>>> find_spec(JobId) override { return no<std::optional<jobs::Spec>>(); }
    Task<Result<jobs::Page>> list(jobs::ListQuery) override { return no<jobs::Page>(); }
    Task<Result<jobs::WebhookStatus>> webhook_status(JobId) override { return no<jobs::WebhookStatus>(); }
    Task<Result<jobs::StateCounts>> counts(std::optional<std::string>) override { return no<jobs::StateCounts>(); }
    Task<Result<jobs::Stats>> stats(jobs::StatsQuery) override { return no<jobs::Stats>(); }
    Task<Result<std::vector<jobs::Unfinished>>> unfinished(std::optional<JobId>, int) override { return no<std::vector<jobs::Unfinished>>(); }
    Task<Result<jobs::Purged>> purge(Time, int) override { return no<jobs::Purged>(); }
    Task<Result<>> discard(JobId) override { return no<void>(); }
    std::unique_ptr<jobs::Ledger> under(jobs::Term) override { return nullptr; }
    Task<Result<jobs::ArrivalPage>> arrivals(std::string, jobs::ArrivalCursor, int) override { return no<jobs::ArrivalPage>(); }
    Task<Result<>> wish(jobs::Wish) override { return no<void>(); }
    Task<Result<std::vector<jobs::Wish>>> wishes(std::string, int) override { return no<std::vector<jobs::Wish>>(); }
    Task<Result<>> drop_wishes(std::vector<std::int64_t>) override { return no<void>(); }
    // clang-format on

private:
    template <class T>
    static Task<Result<T>> no() {
        co_return fail(Code::internal, "nobody asks for this here");
    }
};

struct Node {
    Node(test::World& of, EventLedger& ledger, int number)
        : world(of),
          bus(of.exchange, node_id(number)),
          mail(of.executor(), bus),
          hub(of.executor(), mail, ledger, ledger) {
        hub.start();
        mail.start();
        world.settle();
    }
    ~Node() {
        world.finish(hub.stop());
        world.finish(mail.stop());
    }

    test::World& world;
    LocalBus bus;
    Mail mail;
    SharedHub hub;
};

Task<> collect(
    std::shared_ptr<Subscription> subscription, std::vector<events::EventPtr>& into, bool& is_over
) {
    for (;;) {
        auto next = co_await subscription->next(Millis(3'600'000));
        if (!next) {
            is_over = true;
            co_return;
        }
        into.push_back(std::move(*next));
    }
}

// One who listens to a job on a node, as jobs::Service lets them.
class Listener {
public:
    Listener(Node& node, EventLedger& ledger, const JobId& job, WatchOptions options = {})
        : world_(node.world),
          subscription_(std::make_shared<Subscription>(node.world.executor(), options)),
          tasks_(node.world.executor()) {
        node.hub.watch(job, subscription_);
        std::vector<events::EventPtr> past;
        for (const jobs::Event& event : ledger.stored[job]) {
            if (event.sequence > options.since) {
                past.push_back(std::make_shared<const jobs::Event>(event));
            }
        }
        subscription_->prime(std::move(past));
        tasks_.spawn("listener", collect(subscription_, heard, is_over));
        world_.settle();
    }
    ~Listener() {
        tasks_.cancel();
        subscription_.reset();
        world_.finish(tasks_.join());
    }

    std::vector<std::uint64_t> stored() const {
        std::vector<std::uint64_t> sequences;
        for (const auto& event : heard) {
            if (event->is_durable()) {
                sequences.push_back(event->sequence);
            }
        }
        return sequences;
    }
    std::size_t count(EventType type) const {
        return static_cast<std::size_t>(std::ranges::count_if(heard, [type](const auto& event) {
            return event->type == type;
        }));
    }

    std::vector<events::EventPtr> heard;
    bool is_over = false;

private:
    test::World& world_;
    std::shared_ptr<Subscription> subscription_;
    TaskGroup tasks_;
};

class SharedHubTest : public testing::Test {
protected:
    Node& node(int number) {
        auto& made = nodes[number];
        if (!made) {
            made = std::make_unique<Node>(world, ledger, number);
        }
        return *made;
    }
    void lead(int number) {
        if (leader != nullptr) {
            leader->hub.lead_all(false);
        }
        leader = &node(number);
        leader->hub.lead_all(true);
    }
    jobs::Job make_job(std::string tenant = "tenant") {
        jobs::Job job;
        job.id = JobId::make(world.time.now());
        job.tenant = std::move(tenant);
        job.dialect = "native";
        store(job, EventType::queued);
        return job;
    }
    std::shared_ptr<jobs::Event> event(jobs::Job& job, EventType type) {
        auto made = std::make_shared<jobs::Event>();
        made->job = job.id;
        made->sequence = ++sequences[job.id];
        made->type = type;
        made->at = world.time.now();
        return made;
    }
    events::EventPtr store(jobs::Job& job, EventType type) {
        const auto made = event(job, type);
        job.sequence = made->sequence;
        job.revision += 1;
        ledger.stored[job.id].push_back(*made);
        return made;
    }
    // Committed, then told.
    void change(jobs::Job& job, EventType type = EventType::started) {
        const auto made = store(job, type);
        leader->hub.publish(job, events::Changed{std::make_shared<const jobs::Job>(job), made, 1});
    }
    void show(jobs::Job& job, EventType type = EventType::progress) {
        leader->hub.publish(job, events::Shown{event(job, type)});
    }
    std::vector<std::uint64_t> stored(const jobs::Job& job, std::uint64_t since = 0) {
        std::vector<std::uint64_t> numbers;
        for (const jobs::Event& one : ledger.stored[job.id]) {
            if (one.sequence > since) {
                numbers.push_back(one.sequence);
            }
        }
        return numbers;
    }
    std::shared_ptr<Feed> subscribe(int number, FeedOptions options = {}) {
        auto feed = std::make_shared<Feed>(world.executor(), std::move(options));
        node(number).hub.subscribe(feed);
        world.settle();
        return feed;
    }

    test::World world;
    EventLedger ledger;
    std::map<int, std::unique_ptr<Node>> nodes;
    Node* leader = nullptr;
    std::map<JobId, std::uint64_t> sequences;
};

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
TEST_F(SharedHubTest, NothingIsMissedThoughHalfOfTheMessagesAreLost) {
    constexpr int kNodes = 3;
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto dice = [&random](unsigned sides) { return random() % sides; };
        for (int number = 1; number <= kNodes; ++number) {
            node(number);
        }
        lead(1);
        world.exchange.decide([&](const NodeId&, const NodeId&) {
            const auto cast = dice(10);
            return cast < 5 ? Fate::is_lost : cast < 6 ? Fate::waits : Fate::arrives;
        });
        std::vector<jobs::Job> all;
        for (int count = 0; count < 3; ++count) {
            all.push_back(make_job());
        }
        struct Watch {
            std::size_t job;
            std::uint64_t since;
            std::unique_ptr<Listener> listener;
        };
        std::vector<Watch> watches;
        ledger.takes = Millis(dice(2) * 30);
        for (int step = 0; step < 60; ++step) {
            const std::size_t which = dice(3);
            jobs::Job& job = all[which];
            const int number = static_cast<int>(1 + dice(kNodes));
            switch (dice(9)) {
                case 0:
                    if (watches.size() < 6) {
                        const std::uint64_t since = dice(2) * dice(3);
                        watches.push_back(
                            {which,
                             since,
                             std::make_unique<Listener>(
                                 node(number), ledger, job.id, WatchOptions{.since = since}
                             )}
                        );
                    }
                    break;
                case 1:
                case 2:
                case 3:
                    change(job);
                    break;
                case 4:
                    show(job);
                    break;
                case 5:
                    world.pass(Millis(dice(1'500)));
                    break;
                case 6:
                    world.exchange.cut_off(node_id(number), dice(2) == 0);
                    break;
                case 7:
                    world.exchange.deliver_waiting();
                    break;
                case 8:
                    if (dice(4) == 0) {
                        lead(number);
                    } else {
                        world.settle();
                    }
                    break;
            }
        }
        world.pass(Millis(10'000));
        for (const Watch& watch : watches) {
            EXPECT_EQ(watch.listener->stored(), stored(all[watch.job], watch.since));
        }
        watches.clear();
        leader = nullptr;
        nodes.clear();
        if (HasFailure()) {
            return;
        }
    }
}

}  // namespace
}  // namespace comfyd::cluster
