#include "app/config/serving.hpp"

#include <gtest/gtest.h>

namespace comfyd::app {
namespace {

TEST(Serving, OnLoopbackOnlyItsNamesAndTheConfiguredOnesAreHosts) {
    Config config;
    EXPECT_TRUE(host_rules(config).allows("localhost:8080"));
    EXPECT_FALSE(host_rules(config).allows("evil.example"));
    config.hosts = {"a.example"};
    config.public_url = "https://b.example:444/x";
    EXPECT_TRUE(host_rules(config).allows("a.example:8080"));
    EXPECT_TRUE(host_rules(config).allows("b.example"));
    EXPECT_FALSE(host_rules(config).allows("evil.example"));
    config.hosts = {"*"};
    EXPECT_TRUE(host_rules(config).allows("evil.example"));
}

TEST(Serving, BeyondLoopbackAnyNameIsAHostUnlessSomeAreConfigured) {
    Config config;
    config.listen = "0.0.0.0:8080";
    EXPECT_TRUE(host_rules(config).allows("any.example"));
    config.hosts = {"a.example"};
    EXPECT_TRUE(host_rules(config).allows("a.example"));
    EXPECT_FALSE(host_rules(config).allows("any.example"));
}

TEST(Serving, ConnectionsFollowFromTheOpenFiles) {
    Config config;
    EXPECT_EQ(server_limits(config, 1 << 20).connections_max, 16'384U);
    EXPECT_EQ(server_limits(config, 1024).connections_max, 768U);
    EXPECT_EQ(server_limits(config, 1024).strangers_per_address_max, 0U);
    config.listen = "0.0.0.0:8080";
    EXPECT_EQ(server_limits(config, 1024).strangers_per_address_max, 192U);
    config.connections_per_address = 7;
    EXPECT_EQ(server_limits(config, 1024).strangers_per_address_max, 7U);
}

}  // namespace
}  // namespace comfyd::app
