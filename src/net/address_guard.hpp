// Where URLs of strangers must not lead (AddressPolicy::public_only), beside private addresses:
// machines of the operator that have public ones, names that clouds answer from inside, and ports
// on which no web server listens. One for the process, as the machines are. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace comfyd::net {

// A name that is refused before anybody is asked for its address: of the loopback, of a cloud's or
// cluster's inside, or a number in another writing than that of an address.
bool is_guarded_name(std::string_view host);
// 80, 443 and those above 1023, but for services that are known to trust whoever reaches them.
bool is_guarded_port(std::uint16_t port);

class AddressGuard {
public:
    static AddressGuard& of_process();

    // The operator's prefixes of NAT64 (RFC 6052), such as "2001:db8:64::/96": what is behind them
    // is judged by the IPv4 address in it. Code::invalid_argument names what is none.
    Result<> set_nat64(const std::vector<std::string>& prefixes);
    // The operator's own machines, by their names and by their addresses; what cannot be read as an
    // address is left out.
    void set_own(std::vector<std::string> names, const std::vector<std::string>& addresses);

    // A private one, one of those machines, or one behind a prefix that leads there.
    bool refuses(const boost::asio::ip::address& address) const;
    // is_guarded_name(), or one of those machines.
    bool refuses_name(std::string_view host) const;

private:
    struct Prefix {
        boost::asio::ip::address_v6::bytes_type bytes;
        std::size_t bits;
    };
    struct Rules {
        std::vector<Prefix> nat64;
        std::vector<boost::asio::ip::address> own;  // sorted
        std::vector<std::string> own_names;         // in small letters
    };
    std::shared_ptr<const Rules> rules() const;
    static bool refuses(const Rules& rules, const boost::asio::ip::address& address);

    mutable Mutex mutex_;
    std::shared_ptr<const Rules> rules_ COMFYD_GUARDED_BY(mutex_) = std::make_shared<Rules>();
};

}  // namespace comfyd::net
