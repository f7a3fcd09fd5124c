#include <gtest/gtest.h>

#include "net/client.hpp"
#include "net/server.hpp"

namespace comfyd::net {
namespace {

TEST(PrivateAddress, RefusesEverythingThatIsNotGlobal) {
    for (const auto* address :
         {"0.0.0.0",
          "0.1.2.3",
          "10.0.0.1",
          "100.64.0.1",
          "100.127.255.255",
          "127.0.0.1",
          "127.9.9.9",
          "169.254.169.254",
          "168.63.129.16",
          "172.16.0.1",
          "172.31.255.255",
          "192.0.0.8",
          "192.0.2.1",
          "192.168.1.1",
          "198.18.0.1",
          "198.19.255.255",
          "198.51.100.7",
          "203.0.113.9",
          "224.0.0.1",
          "239.255.255.255",
          "240.0.0.1",
          "255.255.255.255",
          "::",
          "::1",
          "::ffff:10.0.0.1",
          "::ffff:127.0.0.1",
          "::127.0.0.1",
          "64:ff9b::10.0.0.1",
          "64:ff9b:1::1",
          "2002:7f00:1::1",
          "2002:c0a8:101::1",
          "2001::1",
          "2001:db8::1",
          "3fff::1",
          "fc00::1",
          "fdff::1",
          "fe80::1",
          "fe80::1%1",
          "fec0::1",
          "ff02::1",
          "100::1",
          "not an address",
          "",
          "127.1",
          "0x7f000001"}) {
        EXPECT_TRUE(is_private_address(address)) << address;
    }
}

TEST(PrivateAddress, AllowsTheInternet) {
    for (const auto* address :
         {"1.1.1.1",
          "8.8.8.8",
          "100.63.255.255",
          "100.128.0.1",
          "172.15.255.255",
          "172.32.0.1",
          "192.0.1.1",
          "198.17.255.255",
          "198.20.0.1",
          "223.255.255.255",
          "2606:4700:4700::1111",
          "::ffff:8.8.8.8",
          "64:ff9b::8.8.8.8",
          "2002:808:808::1"}) {
        EXPECT_FALSE(is_private_address(address)) << address;
    }
}

TEST(EndpointParse, Forms) {
    const auto check =
        [](std::string_view text, std::string_view host, std::uint16_t port, bool loopback) {
            const auto endpoint = Endpoint::parse(text);
            ASSERT_TRUE(endpoint) << text;
            EXPECT_EQ(endpoint->host, host);
            EXPECT_EQ(endpoint->port, port);
            EXPECT_EQ(endpoint->is_loopback(), loopback) << text;
        };
    check("127.0.0.1:8080", "127.0.0.1", 8080, true);
    check("127.0.0.2:0", "127.0.0.2", 0, true);
    check("[::1]:8080", "::1", 8080, true);
    check("[::]:8080", "::", 8080, false);
    check("[::ffff:127.0.0.1]:1", "::ffff:127.0.0.1", 1, true);
    check(":8080", "0.0.0.0", 8080, false);
    check("localhost:80", "localhost", 80, true);
    check("192.168.1.5:80", "192.168.1.5", 80, false);
    check("gpu-box:80", "gpu-box", 80, false);
    EXPECT_EQ((Endpoint{"::1", 80}).to_string(), "[::1]:80");
    EXPECT_EQ((Endpoint{"127.0.0.1", 80}).to_string(), "127.0.0.1:80");
}

TEST(EndpointParse, UnixSockets) {
    const auto endpoint = Endpoint::parse("unix:/run/a:1.sock");
    ASSERT_TRUE(endpoint);
    EXPECT_EQ(endpoint->socket, "/run/a:1.sock");
    EXPECT_TRUE(endpoint->is_loopback());
    EXPECT_EQ(endpoint->to_string(), "unix:/run/a:1.sock");
    EXPECT_EQ(endpoint->url(), "unix:/run/a:1.sock");
    EXPECT_EQ((Endpoint{"::1", 80}).url(), "http://[::1]:80");
}

TEST(EndpointParse, RefusesTheRest) {
    for (const auto* text :
         {"",
          "8080",
          "localhost",
          "a:b",
          "a:70000",
          "a:-1",
          "::1:80",
          "[::1]",
          "[::1:80",
          "http://a:80",
          "unix:",
          "unix:relative.sock",
          "a b:80"}) {
        const auto endpoint = Endpoint::parse(text);
        ASSERT_FALSE(endpoint) << text;
        EXPECT_EQ(endpoint.error().code, Code::invalid_argument);
    }
}

}  // namespace
}  // namespace comfyd::net
