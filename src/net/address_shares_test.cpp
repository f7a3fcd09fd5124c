#include "net/address_shares.hpp"

#include <gtest/gtest.h>

namespace comfyd::net {
namespace {

using boost::asio::ip::make_address;

TEST(AddressShares, EachAddressHasItsOwn) {
    AddressShares shares(2);
    const auto one = make_address("10.0.0.1");
    const std::string first = shares.take(one);
    EXPECT_NE(first, "");
    EXPECT_NE(shares.take(one), "");
    EXPECT_EQ(shares.take(one), "");
    EXPECT_NE(shares.take(make_address("10.0.0.2")), "");
    shares.give_back(first);
    EXPECT_NE(shares.take(one), "");
    EXPECT_EQ(shares.take(one), "");
}

TEST(AddressShares, ANetworkOfIpv6IsOneHolder) {
    AddressShares shares(1);
    EXPECT_NE(shares.take(make_address("2001:db8::1")), "");
    EXPECT_EQ(shares.take(make_address("2001:db8::ffff:2")), "");
    EXPECT_NE(shares.take(make_address("2001:db8:0:1::1")), "");
}

TEST(AddressShares, MayHaveNoLimit) {
    AddressShares shares(0);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_NE(shares.take(make_address("127.0.0.1")), "");
    }
}

}  // namespace
}  // namespace comfyd::net
