#include "net/address_shares.hpp"

#include <algorithm>

namespace comfyd::net {
namespace {

std::string holder_of(const boost::asio::ip::address& address) {
    if (address.is_v4()) {
        return address.to_string();
    }
    auto bytes = address.to_v6().to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return boost::asio::ip::address_v6(bytes).to_string();
}

}  // namespace

std::string AddressShares::take(const boost::asio::ip::address& address) {
    std::string holder = holder_of(address);
    const Lock lock(mutex_);
    std::size_t& held = held_[holder];
    if (max_ != 0 && held >= max_) {
        return {};
    }
    ++held;
    return holder;
}

void AddressShares::give_back(const std::string& holder) {
    const Lock lock(mutex_);
    const auto found = held_.find(holder);
    if (found != held_.end() && --found->second == 0) {
        held_.erase(found);
    }
}

}  // namespace comfyd::net
