#include "support/redis.hpp"

#include <gtest/gtest.h>

#include "support/wait.hpp"

namespace comfyd::support {
namespace {

TEST(Redis, ServesIsKilledAndStartsAgainEmpty) {
    Redis redis;
    EXPECT_EQ(redis.command({"SET", "a", "1"}), "OK");
    redis.kill();
    EXPECT_THROW(redis.command({"PING"}), std::runtime_error);
    redis.start();
    EXPECT_EQ(redis.command({"GET", "a"}), "");
    EXPECT_EQ(redis.url(), "redis://127.0.0.1:" + std::to_string(redis.port()));
}

TEST(Redis, MayAskForAPassword) {
    const Redis redis({.password = "secret"});
    EXPECT_EQ(redis.command({"PING"}), "PONG");
}

TEST(Redis, SpeaksTls) {
    const Redis redis({.tls = true});
    EXPECT_EQ(redis.command({"PING"}), "PONG");
    EXPECT_TRUE(redis.url().starts_with("rediss://localhost:"));
}

TEST(RedisWithSentinel, HandsOver) {
    RedisWithSentinel redis;
    EXPECT_EQ(redis.master_port(), redis.master().port());
    redis.hand_over();
    EXPECT_EQ(redis.replica().command({"ROLE"}).substr(0, 6), "master");
}

TEST(RedisWithSentinel, ReplacesADeadMaster) {
    RedisWithSentinel redis;
    redis.master().kill();
    EXPECT_TRUE(wait_until([&] { return redis.master_port() == redis.replica().port(); }));
}

}  // namespace
}  // namespace comfyd::support
