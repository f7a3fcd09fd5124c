#include "audit/cut_address.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace comfyd::audit {

std::string cut_address(const std::string& address) {
    namespace ip = boost::asio::ip;
    boost::system::error_code error;
    const ip::address parsed = ip::make_address(address, error);
    if (error) {
        return address;
    }
    if (parsed.is_v4()) {
        return ip::make_network_v4(parsed.to_v4(), 24).canonical().to_string();
    }
    if (parsed.to_v6().is_v4_mapped()) {
        return cut_address(ip::make_address_v4(ip::v4_mapped, parsed.to_v6()).to_string());
    }
    return ip::make_network_v6(parsed.to_v6(), 48).canonical().to_string();
}

}  // namespace comfyd::audit
