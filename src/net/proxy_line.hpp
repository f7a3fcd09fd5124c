// What a proxy says before the first byte of its client: the PROXY protocol, versions 1 (text) and
// 2 (binary), as HAProxy has published it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <boost/asio/ip/address.hpp>

#include "base/error.hpp"

namespace comfyd::net {

inline constexpr std::size_t kProxyLineBytesMax = 4096;

struct ProxyLine {
    std::size_t bytes = 0;  // that belong to it
    // Whom the proxy speaks for; nullopt: for itself, or it does not know.
    std::optional<boost::asio::ip::address> client{};
};

// nullopt: more must come. Code::protocol_error: it is none.
Result<std::optional<ProxyLine>> parse_proxy_line(std::string_view begun);

}  // namespace comfyd::net
