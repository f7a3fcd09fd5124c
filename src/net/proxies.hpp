// Whom a server believes when it says for whom it asks: reverse proxies, by the addresses that
// their connections come from. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "net/address_ranges.hpp"
#include "net/http.hpp"

namespace comfyd::net {

class TrustedProxies {
public:
    // The one header that counts: a proxy passes on what clients send in the other.
    enum class Header { x_forwarded_for, forwarded };

    TrustedProxies() = default;  // nobody
    // "10.0.0.0/8", "192.0.2.7", "fd00::/8"; Code::invalid_argument names what is none.
    static Result<TrustedProxies> parse(
        const std::vector<std::string>& ranges, Header header = Header::x_forwarded_for
    );

    bool trusts(const boost::asio::ip::address& address) const;

    struct Client {
        std::string address;
        bool is_https;
    };
    // What a trusted one says of whom it asks for. The rightmost address that is not a trusted
    // one's: what stands before it is the client's own invention.
    Client client(const std::string& peer, bool is_https, const Headers& headers) const;

private:
    AddressRanges ranges_;
    Header header_ = Header::x_forwarded_for;
};

}  // namespace comfyd::net
