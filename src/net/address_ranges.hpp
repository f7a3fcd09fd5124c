// A set of addresses, named one by one or as ranges, and the text under which an address is
// counted. Immutable; any thread.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/error.hpp"

namespace comfyd::net {

class AddressRanges {
public:
    AddressRanges() = default;  // none
    // "10.0.0.0/8", "192.0.2.7", "fd00::/8"; Code::invalid_argument names what is none.
    static Result<AddressRanges> parse(const std::vector<std::string>& texts);

    bool contain(const boost::asio::ip::address& address) const;
    bool empty() const { return ranges_.empty(); }

private:
    struct Range {
        boost::asio::ip::address_v6 first;  // IPv4 as the mapped ones
        int bits;
    };
    std::vector<Range> ranges_;
};

// As it is written in logs and counted: mapped addresses as IPv4.
boost::asio::ip::address without_mapping(const boost::asio::ip::address& address);
// The network of so many bits that an IPv6 address lies in, as text; an IPv4 address by itself.
std::string network_of(const boost::asio::ip::address& address, int bits);

}  // namespace comfyd::net
