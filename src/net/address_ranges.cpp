#include "net/address_ranges.hpp"

#include <algorithm>
#include <charconv>

namespace comfyd::net {
namespace {

using boost::asio::ip::address;
using boost::asio::ip::address_v6;

constexpr int kMappedBits = 96;  // before the IPv4 address in an IPv6 one

address_v6 widen(const address& one) {
    return one.is_v6() ? one.to_v6()
                       : boost::asio::ip::make_address_v6(boost::asio::ip::v4_mapped, one.to_v4());
}

address_v6 cut(const address_v6& one, int bits) {
    auto bytes = one.to_bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const int kept = std::clamp(bits - static_cast<int>(i) * 8, 0, 8);
        bytes[i] = static_cast<std::uint8_t>(bytes[i] & (0xFF00 >> kept));
    }
    return address_v6(bytes);
}

}  // namespace

Result<AddressRanges> AddressRanges::parse(const std::vector<std::string>& texts) {
    AddressRanges made;
    for (const std::string& text : texts) {
        const auto slash = text.find('/');
        boost::system::error_code error;
        const auto first = boost::asio::ip::make_address(text.substr(0, slash), error);
        const int all = !error && first.is_v4() ? 32 : 128;
        int bits = all;
        if (slash != std::string::npos) {
            const char* end = text.data() + text.size();
            const auto read = std::from_chars(text.data() + slash + 1, end, bits);
            if (read.ec != std::errc() || read.ptr != end) {
                bits = -1;
            }
        }
        if (error || bits < 0 || bits > all) {
            return fail(
                Code::invalid_argument,
                "'" + text + "' is no address and no range such as 10.0.0.0/8 or fd00::/8"
            );
        }
        const int wide_bits = first.is_v4() ? kMappedBits + bits : bits;
        made.ranges_.push_back({cut(widen(first), wide_bits), wide_bits});
    }
    return made;
}

bool AddressRanges::contain(const address& one) const {
    return std::ranges::any_of(ranges_, [wide = widen(one)](const Range& range) {
        return cut(wide, range.bits) == range.first;
    });
}

address without_mapping(const address& one) {
    return one.is_v6() && one.to_v6().is_v4_mapped()
               ? boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, one.to_v6())
               : one;
}

std::string network_of(const address& one, int bits) {
    const address plain = without_mapping(one);
    return plain.is_v4() ? plain.to_string() : cut(plain.to_v6(), bits).to_string();
}

}  // namespace comfyd::net
