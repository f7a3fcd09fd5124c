#include "net/proxy_line.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace comfyd::net {
namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view kText = "PROXY ";
constexpr std::size_t kTextBytesMax = 107;
constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr std::size_t kHeadBytes = 16;

tl::unexpected<Error> no_proxy_line() {
    return fail(Code::protocol_error, "it does not begin as the PROXY protocol has it");
}

bool begins_like(std::string_view begun, std::string_view mark) {
    const auto common = std::min(begun.size(), mark.size());
    return begun.substr(0, common) == mark.substr(0, common);
}

std::vector<std::string_view> split(std::string_view line) {
    std::vector<std::string_view> words;
    while (true) {
        const auto space = line.find(' ');
        words.push_back(line.substr(0, space));
        if (space == std::string_view::npos) {
            return words;
        }
        line.remove_prefix(space + 1);
    }
}

// "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443"
Result<std::optional<ProxyLine>> parse_text(std::string_view begun) {
    const auto end = begun.substr(0, kTextBytesMax).find("\r\n");
    if (end == std::string_view::npos) {
        return begun.size() < kTextBytesMax ? Result<std::optional<ProxyLine>>(std::nullopt)
                                            : no_proxy_line();
    }
    const auto words = split(begun.substr(0, end));
    ProxyLine line{end + 2};
    if (words[1] == "UNKNOWN") {
        return line;
    }
    if (words.size() != 6 || (words[1] != "TCP4" && words[1] != "TCP6")) {
        return no_proxy_line();
    }
    boost::system::error_code error;
    const auto client = ip::make_address(std::string(words[2]), error);
    if (error || client.is_v4() != (words[1] == "TCP4")) {
        return no_proxy_line();
    }
    line.client = client;
    return line;
}

template <class Address>
Address address_at(std::string_view bytes) {
    typename Address::bytes_type raw{};
    std::copy_n(bytes.begin(), raw.size(), raw.begin());
    return Address(raw);
}

Result<std::optional<ProxyLine>> parse_binary(std::string_view begun) {
    if (begun.size() < kHeadBytes) {
        return std::nullopt;
    }
    const auto byte = [begun](std::size_t at) { return static_cast<unsigned char>(begun[at]); };
    const std::size_t length = static_cast<std::size_t>(byte(14)) << 8 | byte(15);
    ProxyLine line{kHeadBytes + length};
    const bool is_local = byte(12) == 0x20;
    if ((!is_local && byte(12) != 0x21) || line.bytes > kProxyLineBytesMax) {
        return no_proxy_line();
    }
    if (begun.size() < line.bytes) {
        return std::nullopt;
    }
    constexpr unsigned char kTcp4 = 0x11;
    constexpr unsigned char kTcp6 = 0x21;
    const std::string_view addresses = begun.substr(kHeadBytes, length);
    if (!is_local && byte(13) == kTcp4 && length >= 12) {
        line.client = address_at<ip::address_v4>(addresses);
    } else if (!is_local && byte(13) == kTcp6 && length >= 36) {
        line.client = address_at<ip::address_v6>(addresses);
    } else if (!is_local && byte(13) != 0) {
        return no_proxy_line();
    }
    return line;
}

}  // namespace

Result<std::optional<ProxyLine>> parse_proxy_line(std::string_view begun) {
    if (begins_like(begun, kText)) {
        return begun.size() < kText.size() ? Result<std::optional<ProxyLine>>(std::nullopt)
                                           : parse_text(begun);
    }
    if (begins_like(begun, kSignature)) {
        return parse_binary(begun);
    }
    return no_proxy_line();
}

}  // namespace comfyd::net
