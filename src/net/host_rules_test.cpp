#include "net/host_rules.hpp"

#include <gtest/gtest.h>

namespace comfyd::net {
namespace {

TEST(HostRules, OfTheLoopbackRefuseEveryOtherName) {
    const HostRules rules = HostRules::loopback();
    for (const char* host :
         {"localhost",
          "LocalHost:8080",
          "127.0.0.1",
          "127.0.0.1:8080",
          "127.8.9.10:1",
          "[::1]",
          "[::1]:8080",
          ""}) {
        EXPECT_TRUE(rules.allows(host)) << host;
    }
    for (const char* host :
         {"evil.example",
          "evil.example:8080",
          "localhost.evil.example",
          "127.0.0.1.evil.example",
          "evil.example:127.0.0.1",
          "10.0.0.1",
          "[::2]:8080",
          "0.0.0.0",
          "[::ffff:10.0.0.1]",
          "::",
          "localhost:8080:x",
          "2130706433",
          "]",
          "[",
          ":"}) {
        EXPECT_FALSE(rules.allows(host)) << host;
    }
}

TEST(HostRules, FurtherNamesAreConfigured) {
    const HostRules rules({"gpu.example", "[fd00::1]", "10.0.0.1"});
    for (const char* host :
         {"gpu.example", "GPU.example:8080", "[fd00::1]:80", "10.0.0.1:80", "localhost"}) {
        EXPECT_TRUE(rules.allows(host)) << host;
    }
    for (const char* host : {"a.gpu.example", "gpu.example.evil", "[fd00::2]", "10.0.0.2"}) {
        EXPECT_FALSE(rules.allows(host)) << host;
    }
}

TEST(HostRules, MayAllowAll) {
    EXPECT_TRUE(HostRules().allows("evil.example"));
    EXPECT_TRUE(HostRules({"*"}).allows("evil.example"));
}

}  // namespace
}  // namespace comfyd::net
