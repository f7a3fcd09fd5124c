// How many connections each address holds of whom nobody knows yet who they are, so that one
// stranger cannot take the places of all. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include <boost/asio/ip/address.hpp>

#include "base/mutex.hpp"

namespace comfyd::net {

class AddressShares {
public:
    explicit AddressShares(std::size_t per_address_max) : max_(per_address_max) {}  // 0: no limit

    // The holder's name, to be given back; empty when it holds all that it may. Of IPv6 a whole /64
    // is one holder, for that is what one customer gets.
    std::string take(const boost::asio::ip::address& address);
    void give_back(const std::string& holder);

private:
    const std::size_t max_;
    Mutex mutex_;
    std::unordered_map<std::string, std::size_t> held_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::net
