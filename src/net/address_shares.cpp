#include "net/address_shares.hpp"

#include "net/address_ranges.hpp"

namespace comfyd::net {
namespace {

constexpr int kCustomerBits = 64;

}  // namespace

std::string AddressShares::take(const boost::asio::ip::address& address) {
    std::string holder = network_of(address, kCustomerBits);
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
