#include "net/address_guard.hpp"

#include <gtest/gtest.h>

#include "net/client.hpp"
#include "net/test_support.hpp"

namespace comfyd::net {
namespace {

boost::asio::ip::address address(const char* text) {
    return boost::asio::ip::make_address(text);
}

TEST(AddressGuard, NamesOfTheInsideAreKnownBeforeTheyAreLookedUp) {
    for (const char* name :
         {"localhost",
          "LOCALHOST.",
          "a.localhost",
          "metadata.google.internal",
          "Metadata.Google.Internal.",
          "metadata.goog",
          "instance-data",
          "anything.internal",
          "printer.local",
          "kubernetes.default",
          "kubernetes.default.svc.cluster.local",
          "127.1",
          "2130706433",
          "0x7f000001",
          "0177.0.0.1",
          "example.0x10"}) {
        EXPECT_TRUE(is_guarded_name(name)) << name;
        EXPECT_TRUE(is_private_host(name)) << name;
    }
    for (const char* name :
         {"example.com",
          "internal.example.com",
          "localhost.example.com",
          "mylocal",
          "notinternal",
          "x1.example",
          "8.8.8.8",
          "2606:4700::1111"}) {
        EXPECT_FALSE(is_guarded_name(name)) << name;
    }
}

TEST(AddressGuard, PortsAreThoseOfWebServers) {
    for (const int port : {80, 443, 1024, 3000, 8080, 8443, 9000, 65'535}) {
        EXPECT_FALSE(is_guarded_port(static_cast<std::uint16_t>(port))) << port;
    }
    for (const int port :
         {0, 1, 22, 25, 81, 1023, 2375, 2379, 5432, 6379, 6443, 8188, 9200, 10'250, 11'211}) {
        EXPECT_TRUE(is_guarded_port(static_cast<std::uint16_t>(port))) << port;
    }
}

TEST(AddressGuard, TheOperatorsOwnMachinesAreRefusedByAddressAndName) {
    AddressGuard guard;
    EXPECT_FALSE(guard.refuses(address("8.8.8.8")));
    guard.set_own(
        {"GPU1.example.com"}, {"8.8.8.8", "::ffff:9.9.9.9", "2606:4700::1111", "nonsense"}
    );
    EXPECT_TRUE(guard.refuses(address("8.8.8.8")));
    EXPECT_TRUE(guard.refuses(address("::ffff:8.8.8.8")));
    EXPECT_TRUE(guard.refuses(address("9.9.9.9")));
    EXPECT_TRUE(guard.refuses(address("2606:4700::1111")));
    EXPECT_FALSE(guard.refuses(address("8.8.4.4")));
    EXPECT_TRUE(guard.refuses(address("10.0.0.1"))) << "private ones as ever";
    EXPECT_TRUE(guard.refuses_name("gpu1.EXAMPLE.com."));
    EXPECT_FALSE(guard.refuses_name("gpu2.example.com"));
    guard.set_own({}, {"8.8.4.4"});
    EXPECT_FALSE(guard.refuses(address("8.8.8.8"))) << "it moved";
    EXPECT_TRUE(guard.refuses(address("8.8.4.4")));
}

TEST(AddressGuard, AddressesBehindNat64AreJudgedByWhatIsInThem) {
    AddressGuard guard;
    EXPECT_FALSE(guard.refuses(address("2a00:64::a00:1"))) << "nobody knows of the prefix";
    ASSERT_TRUE(guard.set_nat64({"2a00:64::/96", "2a00:3200::/32", "2a00:4800:1::/48"}));
    guard.set_own({}, {"8.8.8.8"});
    EXPECT_TRUE(guard.refuses(address("2a00:64::a00:1"))) << "10.0.0.1";
    EXPECT_TRUE(guard.refuses(address("2a00:64::7f00:1")));
    EXPECT_TRUE(guard.refuses(address("2a00:64::808:808"))) << "a machine of our own";
    EXPECT_FALSE(guard.refuses(address("2a00:64::808:404")));
    EXPECT_TRUE(guard.refuses(address("2a00:3200:a00:1::"))) << "10.0.0.1 behind 32 bits";
    EXPECT_FALSE(guard.refuses(address("2a00:3200:808:404::")));
    // Byte 8 is passed over: 10.0 | 0.1 around it.
    EXPECT_TRUE(guard.refuses(address("2a00:4800:1:a00:0:100::")));
    EXPECT_FALSE(guard.refuses(address("2a00:4800:1:808:4:400::")));
}

TEST(AddressGuard, WhatIsNoPrefixIsNamed) {
    AddressGuard guard;
    for (const char* bad : {"", "2a00:64::", "2a00:64::/95", "10.0.0.0/8", "nonsense/96"}) {
        const auto refused = guard.set_nat64({bad});
        ASSERT_FALSE(refused) << bad;
        EXPECT_NE(refused.error().message.find(bad), std::string::npos);
    }
}

TEST(AddressGuard, AClientForStrangersAsksItAndOthersDoNot) {
    test::Loop loop;
    ClientOptions options;
    options.policy = AddressPolicy::public_only;
    Client guarded(loop.executor(), options);
    ClientRequest request;
    request.url = "http://metadata.google.internal/";
    auto refused = loop.run(guarded.send(request));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::connection_failed);
    EXPECT_NE(refused.error().message.find("cannot be resolved to a public"), std::string::npos);
    request.url = "http://8.8.8.8:6379/";
    refused = loop.run(guarded.send(request));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::address_refused);
    AddressGuard::of_process().set_own({"own.example.com"}, {"8.8.8.8"});
    request.url = "http://8.8.8.8/";
    refused = loop.run(guarded.send(request));
    request.url = "http://own.example.com/";
    const auto unnamed = loop.run(guarded.send(request));
    AddressGuard::of_process().set_own({}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::address_refused);
    ASSERT_FALSE(unnamed);
    EXPECT_NE(unnamed.error().message.find("cannot be resolved to a public"), std::string::npos);
}

}  // namespace
}  // namespace comfyd::net
