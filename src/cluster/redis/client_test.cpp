#include "cluster/redis/client.hpp"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "net/test_support.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis.hpp"

namespace comfyd::cluster::redis {
namespace {

using support::FaultProxy;
using support::Redis;
using support::wait_until;

Task<bool> start(Client& client) {
    client.start();
    co_return true;
}

Task<bool> stop(Client& client) {
    co_await client.stop();
    co_return true;
}

Task<Result<Reply>> run(Client& client, std::vector<std::string> words, Millis patience) {
    auto reply = co_await client.command(std::move(words), Deadline::in(patience));
    co_return reply;
}

// A client on a thread of its own.
class Caller {
public:
    explicit Caller(const std::string& url)
        : client_(loop_.executor(), *Url::parse(url), [this](bool is_up, const Error& why) {
              const std::scoped_lock lock(mutex_);
              is_up_ = is_up;
              why_ = why;
          }) {
        loop_.run(start(client_));
    }
    ~Caller() { loop_.run(stop(client_)); }

    bool is_up() const {
        const std::scoped_lock lock(mutex_);
        return is_up_;
    }
    Error why() const {
        const std::scoped_lock lock(mutex_);
        return why_;
    }
    bool waits_for_up() {
        return wait_until([this] { return is_up(); });
    }
    Result<Reply> operator()(std::vector<std::string> words, Millis patience = Millis(30'000)) {
        return loop_.run(run(client_, std::move(words), patience));
    }
    auto begin(std::vector<std::string> words, Millis patience = Millis(30'000)) {
        return loop_.start(run(client_, std::move(words), patience));
    }

private:
    mutable std::mutex mutex_;
    bool is_up_ = false;
    Error why_;
    net::test::Loop loop_;
    Client client_;
};

TEST(RedisClient, RunsCommands) {
    const Redis redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_EQ(call({"INCR", "n"})->number, 1);
    EXPECT_EQ(call({"EVAL", "return {KEYS[1], ARGV[1] + 1}", "1", "k", "41"})->items[1].number, 42);
    EXPECT_TRUE(call({"GET", "none"})->is(Reply::Kind::nil));
    const auto refused = call({"INCR"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::upstream_error);
    EXPECT_NE(refused.error().message.find("wrong number"), std::string::npos);
}

TEST(RedisClient, PipelinesCommandsAndGivesEachItsAnswer) {
    const Redis redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    std::vector<std::future<Result<Reply>>> replies;
    for (int count = 0; count < 1'000; ++count) {
        replies.push_back(call.begin({"ECHO", std::to_string(count)}));
    }
    for (int count = 0; count < 1'000; ++count) {
        EXPECT_EQ(replies[static_cast<std::size_t>(count)].get()->text, std::to_string(count));
    }
}

TEST(RedisClient, ChoosesADatabase) {
    const Redis redis;
    Caller call(redis.url() + "/3");
    ASSERT_TRUE(call.waits_for_up());
    ASSERT_TRUE(call({"SET", "a", "1"}));
    EXPECT_EQ(redis.command({"-n", "3", "GET", "a"}), "1");
}

TEST(RedisClient, SaysItsPassword) {
    const Redis redis({.password = "s3cret"});
    Caller call(redis.url());
    EXPECT_TRUE(call.waits_for_up());
}

TEST(RedisClient, SaysItsUser) {
    const Redis redis;
    redis.command({"ACL", "SETUSER", "ann", "on", ">p4ss", "~*", "&*", "+@all"});
    Caller call("redis://ann:p4ss@127.0.0.1:" + std::to_string(redis.port()));
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_EQ(call({"ACL", "WHOAMI"})->text, "ann");
}

TEST(RedisClient, IsToldWhatIsWrongWithItsPassword) {
    const Redis redis({.password = "s3cret"});
    const std::string at = "127.0.0.1:" + std::to_string(redis.port());
    for (const std::string& url : {"redis://:wr0ng@" + at, "redis://" + at}) {
        Caller call(url);
        ASSERT_TRUE(wait_until([&] { return call.why().code == Code::unauthorized; }));
        EXPECT_FALSE(call.is_up());
        const std::string said = call.why().message;
        EXPECT_NE(said.find(at), std::string::npos) << said;
        EXPECT_EQ(said.find("wr0ng"), std::string::npos) << said;
    }
}

TEST(RedisClient, SpeaksTlsToWhomItTrusts) {
    const Redis redis({.tls = true});
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_EQ(call({"ECHO", "hello"})->text, "hello");

    Caller careful("rediss://localhost:" + std::to_string(redis.port()));
    ASSERT_TRUE(wait_until([&] { return careful.why().code == Code::connection_failed; }));
    EXPECT_NE(careful.why().message.find("certificate"), std::string::npos)
        << careful.why().message;
}

TEST(RedisClient, ComesBackAfterAKill) {
    Redis redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    redis.kill();
    ASSERT_TRUE(wait_until([&] { return !call.is_up(); }));
    EXPECT_EQ(call({"PING"}).error().code, Code::connection_failed);
    redis.start();
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_TRUE(call({"PING"}));
}

TEST(RedisClient, FailsWhatAServerThatWentAwayHadNotAnswered) {
    const Redis redis;
    FaultProxy proxy(redis.port());
    Caller call("redis://127.0.0.1:" + std::to_string(proxy.port()));
    ASSERT_TRUE(call.waits_for_up());
    proxy.inflict_after(FaultProxy::Way::to_server, "lost", FaultProxy::Fault::lose_answer);
    const auto reply = call({"SET", "key", "lost"});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, Code::connection_failed);
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_EQ(call({"GET", "key"})->text, "lost");
}

TEST(RedisClient, GivesUpAnAnswerAtItsDeadlineAndKeepsTheOrderOfTheOthers) {
    Redis redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    redis.freeze();
    const auto late = call({"ECHO", "late"}, Millis(1));
    auto next = call.begin({"ECHO", "next"});
    redis.thaw();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::request_timeout);
    EXPECT_EQ(net::test::get(next)->text, "next");
}

TEST(RedisClient, LeavesAServerThatIsSilent) {
    const Redis redis;
    FaultProxy proxy(redis.port());
    Caller call("redis://127.0.0.1:" + std::to_string(proxy.port()));
    ASSERT_TRUE(call.waits_for_up());
    proxy.inflict(FaultProxy::Fault::swallow_answers);
    ASSERT_TRUE(wait_until([&] { return call.why().code == Code::request_timeout; }));
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_TRUE(call({"PING"}));
}

TEST(RedisClient, DoesNotWaitForEverForOneThatAcceptsAndNeverAnswers) {
    const Redis redis;
    FaultProxy proxy(redis.port());
    proxy.inflict_on_all(FaultProxy::Fault::swallow_both);
    Caller call("redis://127.0.0.1:" + std::to_string(proxy.port()));
    EXPECT_TRUE(wait_until([&] { return call.why().code == Code::request_timeout; }));
    EXPECT_FALSE(call.is_up());
}

TEST(RedisClient, FindsTheMasterBySentinelsThatAskForAPassword) {
    support::RedisWithSentinel redis("s3cret");
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    EXPECT_EQ(call({"ROLE"})->items[0].text, "master");
}

TEST(RedisClient, FollowsAFailover) {
    support::RedisWithSentinel redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    redis.master().kill();
    ASSERT_TRUE(wait_until([&] {
        const auto port = call({"CONFIG", "GET", "port"});
        return port && port->items[1].text == std::to_string(redis.replica().port());
    }));
    EXPECT_TRUE(call({"SET", "a", "1"}));
}

TEST(RedisClient, LeavesAMasterThatIsNoneAnyMore) {
    support::RedisWithSentinel redis;
    Caller call(redis.url());
    ASSERT_TRUE(call.waits_for_up());
    redis.hand_over();
    EXPECT_TRUE(wait_until([&] {
        const auto port = call({"CONFIG", "GET", "port"});
        return port && port->items[1].text == std::to_string(redis.replica().port());
    }));
}

}  // namespace
}  // namespace comfyd::cluster::redis
