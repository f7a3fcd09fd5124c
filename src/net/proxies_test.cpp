#include "net/proxies.hpp"

#include <gtest/gtest.h>

namespace comfyd::net {
namespace {

TrustedProxies trusting(
    const std::vector<std::string>& ranges,
    TrustedProxies::Header header = TrustedProxies::Header::x_forwarded_for
) {
    return *TrustedProxies::parse(ranges, header);
}

std::string client_of(
    const TrustedProxies& proxies, const std::vector<std::pair<std::string, std::string>>& lines
) {
    Headers headers;
    for (const auto& [name, value] : lines) {
        headers.add(name, value);
    }
    const auto client = proxies.client("10.0.0.1", false, headers);
    return client.address + (client.is_https ? " https" : "");
}

bool trusts(const TrustedProxies& proxies, const std::string& address) {
    return proxies.trusts(boost::asio::ip::make_address(address));
}

TEST(TrustedProxies, AreRangesOfBothKindsOfAddresses) {
    const auto proxies = trusting({"10.0.0.0/8", "192.0.2.7", "fd00::/9", "172.16.0.0/12"});
    for (const char* good :
         {"10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3", "192.0.2.7", "fd7f::1", "172.31.0.1"}) {
        EXPECT_TRUE(trusts(proxies, good)) << good;
    }
    for (const char* bad :
         {"11.0.0.0", "9.255.255.255", "192.0.2.8", "fd80::1", "172.32.0.0", "::10.0.0.1"}) {
        EXPECT_FALSE(trusts(proxies, bad)) << bad;
    }
    EXPECT_FALSE(trusts(TrustedProxies(), "127.0.0.1"));
    EXPECT_TRUE(trusts(trusting({"0.0.0.0/0"}), "203.0.113.9"));
    EXPECT_FALSE(trusts(trusting({"0.0.0.0/0"}), "2001:db8::1"));
}

TEST(TrustedProxies, WhatIsNoRangeIsNamed) {
    for (const char* bad :
         {"", "proxy", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x", "fd00::/129"}) {
        const auto parsed = TrustedProxies::parse({"127.0.0.1", bad});
        ASSERT_FALSE(parsed) << bad;
        EXPECT_NE(parsed.error().message.find("'" + std::string(bad) + "'"), std::string::npos);
    }
}

TEST(TrustedProxies, TheClientIsTheLastWhomNoneOfThemIs) {
    const auto proxies = trusting({"10.0.0.0/8"});
    const std::string name = "X-Forwarded-For";
    EXPECT_EQ(client_of(proxies, {}), "10.0.0.1");
    EXPECT_EQ(client_of(proxies, {{name, "203.0.113.9"}}), "203.0.113.9");
    // What the client wrote itself stands to the left.
    EXPECT_EQ(client_of(proxies, {{name, "127.0.0.1, 203.0.113.9, 10.0.0.2"}}), "203.0.113.9");
    EXPECT_EQ(client_of(proxies, {{name, "127.0.0.1"}, {name, "203.0.113.9"}}), "203.0.113.9");
    EXPECT_EQ(client_of(proxies, {{name, "203.0.113.9, unknown, 10.0.0.2"}}), "10.0.0.2");
    EXPECT_EQ(client_of(proxies, {{name, "10.0.0.3, 10.0.0.2"}}), "10.0.0.3");
    EXPECT_EQ(client_of(proxies, {{name, "203.0.113.9:4711"}}), "203.0.113.9");
    EXPECT_EQ(client_of(proxies, {{name, "[2001:db8::1]:4711"}}), "2001:db8::1");
    EXPECT_EQ(client_of(proxies, {{name, "::ffff:203.0.113.9"}}), "203.0.113.9");
    EXPECT_EQ(client_of(proxies, {{name, ",,"}}), "10.0.0.1");
    EXPECT_EQ(client_of(proxies, {{"Forwarded", "for=203.0.113.9"}}), "10.0.0.1");
    EXPECT_EQ(
        client_of(proxies, {{name, "203.0.113.9"}, {"X-Forwarded-Proto", "https"}}),
        "203.0.113.9 https"
    );
}

TEST(TrustedProxies, ForwardedIsReadWhereItIsTheHeaderThatCounts) {
    const auto proxies = trusting({"10.0.0.0/8"}, TrustedProxies::Header::forwarded);
    const std::string name = "Forwarded";
    EXPECT_EQ(client_of(proxies, {{name, "for=203.0.113.9;proto=https"}}), "203.0.113.9 https");
    EXPECT_EQ(
        client_of(proxies, {{name, R"(for=127.0.0.1, For="[2001:db8::1]:4711" ; by=10.0.0.2)"}}),
        "2001:db8::1"
    );
    EXPECT_EQ(client_of(proxies, {{name, "for=203.0.113.9, for=_hidden"}}), "10.0.0.1");
    EXPECT_EQ(client_of(proxies, {{name, "for=unknown"}}), "10.0.0.1");
    EXPECT_EQ(client_of(proxies, {{"X-Forwarded-For", "203.0.113.9"}}), "10.0.0.1");
}

}  // namespace
}  // namespace comfyd::net
