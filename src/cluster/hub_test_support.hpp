// For the tests of the shared hub: nodes with hubs over one ledger of events, those who listen, and
// what a leader publishes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/shared_hub.hpp"
#include "cluster/test_support.hpp"

namespace comfyd::cluster::test {

using events::Feed;
using events::FeedOptions;
using events::Subscription;
using events::WatchOptions;
using Fate = LocalExchange::Fate;
using jobs::EventType;

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
    Task<Result<jobs::ArrivalPage>> arrivals(std::string, jobs::ArrivalCursor, int, jobs::IsKnown) override { return no<jobs::ArrivalPage>(); }
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
    Node(World& of, EventLedger& ledger, int number)
        : world(of),
          bus(of.exchange, node_id(number)),
          mail(of.executor(), bus),
          hub(of.executor(), mail, ledger, ledger) {
        hub.start();
        mail.start();
        bus.start();
        world.settle();
    }
    ~Node() {
        world.finish(hub.stop());
        world.finish(mail.stop());
    }

    World& world;
    LocalBus bus;
    Mail mail;
    SharedHub hub;
};

inline Task<> collect(
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
    World& world_;
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

    World world;
    EventLedger ledger;
    std::map<int, std::unique_ptr<Node>> nodes;
    Node* leader = nullptr;
    std::map<JobId, std::uint64_t> sequences;
};

}  // namespace comfyd::cluster::test
