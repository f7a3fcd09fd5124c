// The shared hub over a real Redis, each bus on a thread of its own.
#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include <boost/asio/post.hpp>

#include "cluster/hub_test_support.hpp"
#include "cluster/redis_bus.hpp"
#include "net/test_support.hpp"
#include "support/redis.hpp"

namespace comfyd::cluster {
namespace {

using namespace test;
using support::wait_until;

Task<bool> start(RedisBus& bus) {
    bus.start();
    co_return true;
}

Task<bool> stop(RedisBus& bus) {
    co_await bus.stop();
    co_return true;
}

Task<bool> stop(SharedHub& hub, Mail& mail) {
    co_await hub.stop();
    co_await mail.stop();
    co_return true;
}

// Runs `what` where the hubs live, and waits for it.
template <class What>
auto ask(net::test::Loop& core, What what) -> decltype(what()) {
    std::packaged_task<decltype(what())()> task(std::move(what));
    auto done = task.get_future();
    boost::asio::post(core.executor(), [&task] { task(); });
    return done.get();
}

class RedisNode {
public:
    RedisNode(net::test::Loop& core, EventLedger& ledger, const std::string& url)
        : core_(core),
          bus_(
              thread_.executor(), *redis::Url::parse(url), "test", NodeId::make(SystemClock().now())
          ),
          mail_(core.executor(), bus_),
          hub(core.executor(), mail_, ledger, ledger) {
        ask(core_, [this] {
            hub.start();
            mail_.start();
        });
        thread_.run(start(bus_));
    }
    ~RedisNode() {
        thread_.run(stop(bus_));
        core_.run(stop(hub, mail_));
    }
    bool comes_up() {
        return wait_until([this] { return bus_.is_up(); });
    }
    bool goes_down() {
        return wait_until([this] { return !bus_.is_up(); });
    }

private:
    net::test::Loop& core_;
    net::test::Loop thread_;
    RedisBus bus_;
    Mail mail_;

public:
    SharedHub hub;
};

class SharedHubOverRedis : public testing::Test {
protected:
    SharedHubOverRedis() {
        ask(core, [this] {
            one.hub.lead_all(true);
            job.id = JobId::make(SystemClock().now());
            job.tenant = "tenant";
        });
    }
    ~SharedHubOverRedis() override { core.cancel(); }

    void change() {
        ask(core, [this] {
            const auto made = make_event(EventType::started);
            job.sequence = made->sequence;
            job.revision += 1;
            ledger.stored[job.id].push_back(*made);
            one.hub.publish(job, events::Changed{std::make_shared<const jobs::Job>(job), made, 1});
        });
    }
    void show() {
        ask(core, [this] { one.hub.publish(job, events::Shown{make_event(EventType::progress)}); });
    }
    void listen() {
        auto subscription = std::make_shared<Subscription>(core.executor(), WatchOptions{});
        ask(core, [&] {
            two.hub.watch(job.id, subscription);
            subscription->prime({});
        });
        collecting_ = core.start(hear(subscription, *this));
    }
    static Task<bool> hear(std::shared_ptr<Subscription> subscription, SharedHubOverRedis& test) {
        for (;;) {
            const auto next = co_await subscription->next(Millis(60'000));
            if (!next) {
                co_return false;
            }
            const std::scoped_lock lock(test.mutex_);
            ((*next)->is_durable() ? test.stored_ : test.shown_).push_back((*next)->sequence);
        }
    }
    std::vector<std::uint64_t> stored() {
        const std::scoped_lock lock(mutex_);
        return stored_;
    }
    std::size_t shown() {
        const std::scoped_lock lock(mutex_);
        return shown_.size();
    }
    std::vector<std::uint64_t> expected() {
        return ask(core, [this] {
            std::vector<std::uint64_t> numbers;
            for (const jobs::Event& event : ledger.stored[job.id]) {
                numbers.push_back(event.sequence);
            }
            return numbers;
        });
    }
    bool hears_all() {
        return wait_until([&] { return stored() == expected(); });
    }

private:
    std::shared_ptr<jobs::Event> make_event(EventType type) {
        auto made = std::make_shared<jobs::Event>();
        made->job = job.id;
        made->sequence = ++last_;
        made->type = type;
        return made;
    }

    std::mutex mutex_;
    std::vector<std::uint64_t> stored_;
    std::vector<std::uint64_t> shown_;
    std::uint64_t last_ = 0;
    std::future<bool> collecting_;

protected:
    support::Redis redis;
    EventLedger ledger;
    jobs::Job job;
    net::test::Loop core;
    RedisNode one{core, ledger, redis.url()};
    RedisNode two{core, ledger, redis.url()};
};

TEST_F(SharedHubOverRedis, AListenerOnAnotherNodeHears) {
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    listen();
    ASSERT_TRUE(wait_until([&] { return ask(core, [&] { return one.hub.wants_progress(job); }); }));
    change();
    EXPECT_TRUE(hears_all());
    EXPECT_TRUE(wait_until([&] {
        show();
        return shown() > 0;
    }));
    for (int count = 0; count < 200; ++count) {
        change();
    }
    EXPECT_TRUE(hears_all());
}

TEST_F(SharedHubOverRedis, AListenerMissesNothingWhileRedisIsAway) {
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    listen();
    change();
    EXPECT_TRUE(hears_all());
    redis.kill();
    change();
    ASSERT_TRUE(one.goes_down() && two.goes_down());
    change();
    EXPECT_TRUE(hears_all());
    redis.start();
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    change();
    EXPECT_TRUE(hears_all());
    EXPECT_TRUE(wait_until([&] {
        show();
        return shown() > 0;
    }));
}

}  // namespace
}  // namespace comfyd::cluster
