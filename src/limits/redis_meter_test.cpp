// Nodes that count requests together by a real Redis.
#include "limits/redis_meter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "net/test_support.hpp"
#include "support/redis.hpp"
#include "support/wait.hpp"

namespace comfyd::limits {
namespace {

using support::Redis;
using support::wait_until;

Task<bool> start(RedisMeter& meter) {
    meter.start();
    co_return true;
}
Task<bool> stop(RedisMeter& meter) {
    co_await meter.stop();
    co_return true;
}

class Node {
public:
    explicit Node(const std::string& url, const std::string& cluster = "test")
        : meter_(loop_.executor(), *cluster::redis::Url::parse(url), cluster) {
        loop_.run(start(meter_));
    }
    ~Node() { loop_.run(stop(meter_)); }

    bool is_up() const { return meter_.is_up(); }
    // Asked until there is an answer: a loaded machine may take longer than a request waits.
    Weighed take(std::string tenant, std::vector<Bucket> buckets, double cost = 1) {
        std::optional<Weighed> weighed;
        EXPECT_TRUE(wait_until([&] {
            weighed = try_take(tenant, buckets, cost);
            lost += weighed ? 0 : 1;
            return weighed.has_value();
        }));
        return weighed.value_or(Weighed{});
    }
    std::optional<Weighed> try_take(std::string tenant, std::vector<Bucket> buckets, double cost) {
        return loop_.run(meter_.take(std::move(tenant), std::move(buckets), cost));
    }

    int lost = 0;  // questions without an answer, which may have been counted

private:
    net::test::Loop loop_;
    RedisMeter meter_;
};

// A window so long that no time of a test gives a unit back.
Rate slow(double burst) {
    return {3'600'000'000, static_cast<std::int64_t>(burst * 3'600'000'000)};
}

TEST(RedisMeter, NodesShareOneCount) {
    Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    Node stranger(redis.url(), "another");
    std::atomic<int> passed = 0;
    const auto ask = [&passed](Node& node) {
        for (int i = 0; i < 100; ++i) {
            passed += node.take("a {tenant} of any name\n", {{"t", slow(60)}}).fits() ? 1 : 0;
        }
    };
    std::thread other([&] { ask(two); });
    ask(one);
    other.join();
    EXPECT_LE(passed, 60);
    EXPECT_GE(passed + one.lost + two.lost, 60);
    EXPECT_FALSE(one.take("a {tenant} of any name\n", {{"t", slow(60)}}).fits());
    EXPECT_TRUE(stranger.take("a {tenant} of any name\n", {{"t", slow(60)}}).fits());
    EXPECT_TRUE(two.take("another", {{"t", slow(60)}}).fits());
}

TEST(RedisMeter, TakesOfAllOrOfNone) {
    Redis redis;
    Node node(redis.url());
    const std::vector<Bucket> both{{"tenant", slow(100)}, {"key", slow(2)}};
    const Weighed first = node.take("acme", both);
    ASSERT_EQ(first.bids.size(), 2u);
    EXPECT_TRUE(first.fits());
    EXPECT_EQ(first.tightest(), 1u);
    while (node.take("acme", both).fits()) {
    }
    const std::int64_t left = node.take("acme", {{"tenant", slow(100)}}, 0).bids[0].remaining;
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(node.take("acme", both).fits());
    }
    EXPECT_EQ(node.take("acme", {{"tenant", slow(100)}}, 0).bids[0].remaining, left);
    EXPECT_TRUE(node.take("acme", {{"tenant", slow(100)}, {"other key", slow(2)}}).fits());
}

TEST(RedisMeter, KeepsEveryDigitAndNothingForEver) {
    Redis redis;
    Node node(redis.url());
    ASSERT_TRUE(node.take("acme", {{"tenant", slow(10)}}).fits());
    const std::string key = redis.command({"KEYS", "comfyd:test:limit:*"});
    ASSERT_FALSE(key.empty());
    const std::string name = key.substr(0, key.find('\n'));
    const std::string kept = redis.command({"GET", name});
    EXPECT_EQ(kept.find_first_not_of("0123456789\n"), std::string::npos) << kept;
    EXPECT_GE(kept.size(), 16u);
    const std::int64_t life = std::stoll(redis.command({"PTTL", name}));
    EXPECT_GT(life, 0);
    EXPECT_LE(life, 10 * 3'600'000 + 1'000);
}

TEST(RedisMeter, ComesBackAfterTheServerDid) {
    Redis redis;
    Node node(redis.url());
    ASSERT_TRUE(node.take("acme", {{"tenant", slow(10)}}).fits());
    EXPECT_EQ(redis.command({"SCRIPT", "FLUSH"}).substr(0, 2), "OK");
    EXPECT_TRUE(node.take("acme", {{"tenant", slow(10)}}).fits()) << "the script is sent again";
    redis.kill();
    ASSERT_TRUE(wait_until([&] { return !node.is_up(); }));
    EXPECT_FALSE(node.try_take("acme", {{"tenant", slow(10)}}, 1));
    redis.start();
    ASSERT_TRUE(wait_until([&] { return node.is_up(); }));
    EXPECT_TRUE(node.take("acme", {{"tenant", slow(10)}}).fits());
}

}  // namespace
}  // namespace comfyd::limits
