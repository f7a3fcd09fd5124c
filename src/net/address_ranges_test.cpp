#include "net/address_ranges.hpp"

#include <gtest/gtest.h>

namespace comfyd::net {
namespace {

using boost::asio::ip::make_address;

TEST(AddressRanges, ContainWhatLiesInOneOfThem) {
    const auto ranges = AddressRanges::parse({"10.0.0.0/9", "192.0.2.7", "2001:db8:4::/47"});
    ASSERT_TRUE(ranges);
    for (const char* one :
         {"10.127.255.255", "192.0.2.7", "::ffff:10.1.2.3", "2001:db8:4::1", "2001:db8:5:ffff::"}) {
        EXPECT_TRUE(ranges->contain(make_address(one))) << one;
    }
    for (const char* one :
         {"10.128.0.0", "192.0.2.8", "2001:db8:6::1", "2001:db8:3::", "::ffff:10.128.0.0"}) {
        EXPECT_FALSE(ranges->contain(make_address(one))) << one;
    }
    EXPECT_TRUE(AddressRanges::parse({"0.0.0.0/0"})->contain(make_address("203.0.113.9")));
    EXPECT_FALSE(AddressRanges::parse({"0.0.0.0/0"})->contain(make_address("2001:db8::")));
    EXPECT_TRUE(AddressRanges::parse({"::/0"})->contain(make_address("2001:db8::")));
    EXPECT_TRUE(AddressRanges().empty());
    for (const char* wrong : {"", "10.0.0.0/33", "10.0.0/8", "::/129", "::/-1", "::/x", "all"}) {
        EXPECT_FALSE(AddressRanges::parse({wrong})) << wrong;
    }
}

TEST(AddressRanges, NetworksAreCounted) {
    const auto network = [](const char* one, int bits) {
        return network_of(make_address(one), bits);
    };
    EXPECT_EQ(network("192.0.2.7", 64), "192.0.2.7");
    EXPECT_EQ(network("::ffff:192.0.2.7", 48), "192.0.2.7");
    EXPECT_EQ(network("2001:db8:1:2:3:4:5:6", 64), "2001:db8:1:2::");
    EXPECT_EQ(network("2001:db8:1:2:3:4:5:6", 48), "2001:db8:1::");
}

}  // namespace
}  // namespace comfyd::net
