#include "cluster/redis_bus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>

#include "net/test_support.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis.hpp"

namespace comfyd::cluster {
namespace {

using support::FaultProxy;
using support::Redis;
using support::wait_until;

Task<bool> start(RedisBus& bus) {
    bus.start();
    co_return true;
}

Task<bool> stop(RedisBus& bus) {
    co_await bus.stop();
    co_return true;
}

Task<Result<redis::Reply>> run(RedisBus& bus, std::vector<std::string> words) {
    auto reply = co_await bus.client().command(std::move(words));
    co_return reply;
}

class Node {
public:
    explicit Node(const std::string& url, std::string cluster = "test")
        : bus(loop_.executor(),
              *redis::Url::parse(url),
              std::move(cluster),
              NodeId::make(SystemClock().now())) {
        bus.listen(
            {.heard =
                 [this](NodeId from, std::string message) {
                     const std::scoped_lock lock(mutex_);
                     heard_.emplace_back(from, std::move(message));
                 },
             .turned =
                 [this](bool is_up) {
                     const std::scoped_lock lock(mutex_);
                     turns_.push_back(is_up);
                 }}
        );
        loop_.run(start(bus));
    }
    ~Node() { loop_.run(stop(bus)); }

    bool comes_up() {
        return wait_until([this] { return bus.is_up(); });
    }
    bool goes_down() {
        return wait_until([this] { return !bus.is_up(); });
    }
    using Heard = std::vector<std::pair<NodeId, std::string>>;
    Heard heard() const {
        const std::scoped_lock lock(mutex_);
        return heard_;
    }
    bool heard_last(std::string_view message) const {
        const std::scoped_lock lock(mutex_);
        return !heard_.empty() && heard_.back().second == message;
    }
    bool hears(std::size_t count) {
        return wait_until([&] { return heard().size() >= count; });
    }
    std::vector<bool> turns() const {
        const std::scoped_lock lock(mutex_);
        return turns_;
    }
    Result<redis::Reply> command(std::vector<std::string> words) {
        return loop_.run(run(bus, std::move(words)));
    }
    NodeId id() const { return bus.self(); }

private:
    mutable std::mutex mutex_;
    Heard heard_;
    std::vector<bool> turns_;
    net::test::Loop loop_;

public:
    RedisBus bus;
};

TEST(RedisBus, CarriesMessagesFromOneNodeToAnother) {
    const Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    const std::string bytes("any \0 bytes\r\n", 13);
    one.bus.send(two.id(), bytes);
    two.bus.send(one.id(), "back");
    ASSERT_TRUE(one.hears(1) && two.hears(1));
    EXPECT_EQ(two.heard(), (Node::Heard{{one.id(), bytes}}));
    EXPECT_EQ(one.heard(), (Node::Heard{{two.id(), "back"}}));
    EXPECT_EQ(one.bus.counts().sent, 1U);
    EXPECT_EQ(one.bus.counts().received, 1U);
    EXPECT_EQ(one.bus.problem(), "");
}

TEST(RedisBus, TellsAllFiveNodesButTheSender) {
    const Redis redis;
    std::vector<std::unique_ptr<Node>> nodes;
    for (int count = 0; count < 5; ++count) {
        nodes.push_back(std::make_unique<Node>(redis.url()));
    }
    for (const auto& node : nodes) {
        ASSERT_TRUE(node->comes_up());
    }
    for (const auto& node : nodes) {
        node->bus.tell_all("from " + node->id().to_string());
    }
    for (const auto& node : nodes) {
        ASSERT_TRUE(node->hears(4));
        std::vector<std::pair<NodeId, std::string>> expected;
        for (const auto& other : nodes) {
            if (other != node) {
                expected.emplace_back(other->id(), "from " + other->id().to_string());
            }
        }
        EXPECT_THAT(node->heard(), testing::UnorderedElementsAreArray(expected));
    }
}

TEST(RedisBus, KeepsClustersApart) {
    const Redis redis;
    Node one(redis.url(), "a");
    Node other(redis.url(), "b");
    Node same(redis.url(), "a");
    ASSERT_TRUE(one.comes_up() && other.comes_up() && same.comes_up());
    one.bus.send(other.id(), "lost");
    one.bus.tell_all("kept");
    ASSERT_TRUE(same.hears(1));
    EXPECT_TRUE(other.heard().empty());
}

TEST(RedisBus, KeepsTheOrderOfAFlood) {
    const Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    constexpr std::size_t kCount = 20'000;
    for (std::size_t count = 0; count < kCount; ++count) {
        one.bus.send(two.id(), std::to_string(count));
    }
    const auto is_through = [&] {
        return one.bus.counts().sent + one.bus.counts().dropped == kCount &&
               two.heard().size() == one.bus.counts().sent;
    };
    ASSERT_TRUE(wait_until(is_through));
    long last = -1;
    for (const auto& [from, message] : two.heard()) {
        EXPECT_GT(std::stol(message), last);
        last = std::stol(message);
    }
}

TEST(RedisBus, DropsWhatIsTooMuchAndGoesOn) {
    Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    one.bus.send(two.id(), std::string(Bus::kMessageBytesMax + 1, 'x'));
    EXPECT_EQ(one.bus.counts().dropped, 1U);
    one.bus.send(two.id(), std::string(Bus::kMessageBytesMax, 'x'));
    ASSERT_TRUE(two.hears(1));
    EXPECT_EQ(two.heard()[0].second.size(), Bus::kMessageBytesMax);
    // A server that does not read.
    redis.freeze();
    ASSERT_TRUE(wait_until([&] {
        one.bus.send(two.id(), std::string(Bus::kMessageBytesMax, 'x'));
        return one.bus.counts().dropped > 1;
    }));
    redis.thaw();
    const auto goes_on = [&] {
        one.bus.send(two.id(), "again");
        return two.heard_last("again");
    };
    ASSERT_TRUE(wait_until(goes_on, std::chrono::seconds(90)));
}

TEST(RedisBus, ComesBackAfterAKill) {
    Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    redis.kill();
    ASSERT_TRUE(one.goes_down() && two.goes_down());
    EXPECT_NE(one.bus.problem(), "");
    one.bus.send(two.id(), "lost");
    EXPECT_EQ(one.bus.counts().dropped, 1U);
    redis.start();
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    one.bus.send(two.id(), "kept");
    ASSERT_TRUE(two.hears(1));
    EXPECT_EQ(two.heard()[0].second, "kept");
    EXPECT_THAT(one.turns(), testing::ElementsAre(true, false, true));
    EXPECT_EQ(one.bus.counts().losses, 1U);
}

TEST(RedisBus, ItsBreakerIsOpenWhileTheServerIsGone) {
    Redis redis;
    Node node(redis.url());
    ASSERT_TRUE(node.comes_up());
    EXPECT_EQ(node.bus.breaker(), CircuitBreaker::State::closed);
    redis.kill();
    ASSERT_TRUE(wait_until([&] { return node.bus.breaker() == CircuitBreaker::State::open; }));
    redis.start();
    ASSERT_TRUE(node.comes_up());
    EXPECT_EQ(node.bus.breaker(), CircuitBreaker::State::closed);
}

TEST(RedisBus, IsNotHarmedByAFlush) {
    const Redis redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    EXPECT_EQ(redis.command({"FLUSHALL"}), "OK");
    one.bus.send(two.id(), "kept");
    EXPECT_TRUE(two.hears(1));
}

TEST(RedisBus, PassesOverMessagesThatNoNodeSent) {
    const Redis redis;
    Node node(redis.url());
    Node other(redis.url());
    ASSERT_TRUE(node.comes_up() && other.comes_up());
    redis.command({"PUBLISH", "comfyd:test:all", "short"});
    redis.command({"PUBLISH", "comfyd:test:all", ""});
    other.bus.send(node.id(), "good");
    ASSERT_TRUE(node.hears(1));
    EXPECT_EQ(node.heard()[0].second, "good");
}

TEST(RedisBus, GoesDownWhenItsInboxIsSilent) {
    const Redis redis;
    FaultProxy proxy(redis.port());
    Node node("redis://127.0.0.1:" + std::to_string(proxy.port()));
    ASSERT_TRUE(node.comes_up());
    proxy.inflict(FaultProxy::Fault::swallow_both);
    ASSERT_TRUE(node.goes_down());
    EXPECT_TRUE(node.comes_up());
}

TEST(RedisBus, IsNeverUpWhereAServerAcceptsAndSaysNothing) {
    const Redis redis;
    FaultProxy proxy(redis.port());
    proxy.inflict_on_all(FaultProxy::Fault::swallow_answers);
    Node node("redis://127.0.0.1:" + std::to_string(proxy.port()));
    ASSERT_TRUE(wait_until([&] { return node.bus.problem().find("in time") != std::string::npos; })
    );
    EXPECT_FALSE(node.bus.is_up());
}

TEST(RedisBus, SaysWhenAUserMayNotSubscribe) {
    const Redis redis;
    redis.command({"ACL", "SETUSER", "ann", "on", ">p4ss", "~*", "resetchannels", "+@all"});
    Node node("redis://ann:p4ss@127.0.0.1:" + std::to_string(redis.port()));
    ASSERT_TRUE(wait_until([&] {
        return node.bus.problem().find("refuses to subscribe") != std::string::npos;
    }));
    EXPECT_FALSE(node.bus.is_up());
}

TEST(RedisBus, NeedsOnlyItsOwnChannelsAndKeys) {
    const Redis redis;
    redis.command(
        {"ACL", "SETUSER", "ann", "on", ">p4ss", "~comfyd:test:*", "&comfyd:test:*", "-@all"}
    );
    redis.command({"ACL", "SETUSER", "ann", "+auth", "+ping", "+publish", "+subscribe", "+incr"});
    const std::string url = "redis://ann:p4ss@127.0.0.1:" + std::to_string(redis.port());
    Node one(url);
    Node two(url);
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    one.bus.tell_all("hello");
    EXPECT_TRUE(two.hears(1));
    EXPECT_EQ(one.command({"INCR", one.bus.prefix() + "n"})->number, 1);
}

TEST(RedisBus, SpeaksTls) {
    const Redis redis({.tls = true});
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    one.bus.send(two.id(), std::string(1'000'000, 'x'));
    ASSERT_TRUE(two.hears(1));
    EXPECT_EQ(two.heard()[0].second.size(), 1'000'000U);
}

TEST(RedisBus, FollowsAFailover) {
    support::RedisWithSentinel redis;
    Node one(redis.url());
    Node two(redis.url());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    redis.master().kill();
    ASSERT_TRUE(one.goes_down() && two.goes_down());
    ASSERT_TRUE(one.comes_up() && two.comes_up());
    one.bus.send(two.id(), "kept");
    EXPECT_TRUE(two.hears(1));
}

}  // namespace
}  // namespace comfyd::cluster
