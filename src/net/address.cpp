// Addresses: which are private (client.hpp), and where a server listens (server.hpp).
#include <algorithm>
#include <array>
#include <charconv>

#include <boost/asio/ip/address.hpp>

#include "net/address_guard.hpp"
#include "net/client.hpp"
#include "net/server.hpp"

namespace comfyd::net {
namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view kUnix = "unix:";

struct Block4 {
    std::uint32_t network;
    int bits;
};

// Everything that the IANA special-purpose registry does not call globally reachable, and
// multicast.
constexpr std::array kPrivate4{
    Block4{0x00000000, 8},   // this network
    Block4{0x0A000000, 8},   // private
    Block4{0x64400000, 10},  // carrier-grade NAT
    Block4{0x7F000000, 8},   // loopback
    Block4{0xA9FE0000, 16},  // link-local, cloud metadata
    Block4{0xA83F8110, 32},  // Azure's host, which answers its machines at a public address
    Block4{0xAC100000, 12},  // private
    Block4{0xC0000000, 24},  // protocol assignments
    Block4{0xC0000200, 24},  // documentation
    Block4{0xC0586300, 24},  // 6to4 relays
    Block4{0xC0A80000, 16},  // private
    Block4{0xC6120000, 15},  // benchmarks
    Block4{0xC6336400, 24},  // documentation
    Block4{0xCB007100, 24},  // documentation
    Block4{0xE0000000, 4},   // multicast
    Block4{0xF0000000, 4},   // reserved, broadcast
};

bool is_private4(std::uint32_t address) {
    return std::any_of(kPrivate4.begin(), kPrivate4.end(), [&](const Block4& block) {
        return (address >> (32 - block.bits)) == (block.network >> (32 - block.bits));
    });
}

std::uint32_t v4_at(const ip::address_v6::bytes_type& bytes, std::size_t at) {
    return static_cast<std::uint32_t>(bytes[at]) << 24 |
           static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
           static_cast<std::uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

bool is_private6(const ip::address_v6::bytes_type& bytes) {
    const auto starts_with = [&](std::initializer_list<unsigned char> prefix) {
        return std::equal(prefix.begin(), prefix.end(), bytes.begin());
    };
    if (starts_with({0x20, 0x02})) {  // 6to4 carries an IPv4 address
        return is_private4(v4_at(bytes, 2));
    }
    if (starts_with({0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) {  // so does NAT64
        return is_private4(v4_at(bytes, 12));
    }
    if (starts_with({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) {  // and an IPv4-mapped address
        return is_private4(v4_at(bytes, 12));
    }
    // Only 2000::/3 is global unicast: this leaves out ::, ::1, IPv4-compatible, local NAT64,
    // discard-only, unique-local, link-local, site-local and multicast.
    if ((bytes[0] & 0xe0) != 0x20) {
        return true;
    }
    const bool protocol_assignments =
        starts_with({0x20, 0x01}) && (bytes[2] & 0xfe) == 0;  // and Teredo
    const bool documentation = starts_with({0x20, 0x01, 0x0d, 0xb8}) ||
                               (starts_with({0x3f, 0xff}) && (bytes[2] & 0xf0) == 0);
    return protocol_assignments || documentation;
}

}  // namespace

bool is_private_address(const std::string& address) {
    boost::system::error_code error;
    const auto parsed = ip::make_address(address, error);
    if (error) {
        return true;  // what cannot be read cannot be trusted
    }
    return parsed.is_v4() ? is_private4(parsed.to_v4().to_uint())
                          : is_private6(parsed.to_v6().to_bytes());
}

bool is_private_host(const std::string& host) {
    boost::system::error_code no_address;
    ip::make_address(host, no_address);
    return no_address ? is_guarded_name(host) : is_private_address(host);
}

Result<Endpoint> Endpoint::parse(std::string_view text) {
    const std::string help =
        "'" + std::string(text) +
        "' is no address to listen on: write host:port, [::1]:port, :port or unix:/path";
    if (text.starts_with(kUnix)) {
        Endpoint endpoint;
        endpoint.socket = text.substr(kUnix.size());
        if (!endpoint.socket.starts_with('/')) {
            return fail(Code::invalid_argument, help);
        }
        return endpoint;
    }
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return fail(Code::invalid_argument, help);
    }
    auto host = text.substr(0, colon);
    const auto digits = text.substr(colon + 1);
    Endpoint endpoint;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
        return fail(Code::invalid_argument, help);
    }
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    if (bracketed != (host.find(':') != std::string_view::npos) ||
        host.find_first_of("[]/ \t") != std::string_view::npos || host.size() > 253) {
        return fail(Code::invalid_argument, help);
    }
    endpoint.host = host.empty() ? "0.0.0.0" : std::string(host);
    return endpoint;
}

bool Endpoint::is_loopback() const {
    if (!socket.empty()) {
        return true;
    }
    boost::system::error_code error;
    const auto address = ip::make_address(host, error);
    if (error) {
        return equal_ignoring_case(host, "localhost");
    }
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        return ip::make_address_v4(ip::v4_mapped, address.to_v6()).is_loopback();
    }
    return address.is_loopback();
}

std::string Endpoint::to_string() const {
    if (!socket.empty()) {
        return std::string(kUnix) + socket;
    }
    const bool v6 = host.find(':') != std::string::npos;
    return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Endpoint::url() const {
    return socket.empty() ? (is_tls ? "https://" : "http://") + to_string() : to_string();
}

}  // namespace comfyd::net
