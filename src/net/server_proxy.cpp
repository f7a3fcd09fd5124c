// How a Connection learns whom a proxy speaks for that says it before anything else.
#include <sys/socket.h>

#include <array>
#include <string>

#include "net/proxy_line.hpp"
#include "net/server_connection.hpp"

namespace comfyd::net {

// False when the connection is of no use. Takes no byte of what follows: that may be TLS.
Task<bool> Connection::hear_proxy() {
    if (!shard_.state.demands_proxy_line) {
        co_return true;
    }
    wait_until(shard_.state.limits.header_timeout);
    std::string heard;
    std::optional<ProxyLine> line;
    while (!line) {
        error_code error;
        co_await transport_.socket().async_wait(
            Socket::wait_read, asio::redirect_error(kAwait, error)
        );
        std::array<char, kProxyLineBytesMax> bytes;
        const auto count = error || aborted_ ? -1
                                             : ::recv(
                                                   transport_.socket().native_handle(),
                                                   bytes.data(),
                                                   bytes.size(),
                                                   MSG_PEEK | MSG_DONTWAIT
                                               );
        if (count < 0 && !error && !aborted_ && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (count <= 0) {
            co_return false;
        }
        const std::size_t before = heard.size();
        heard.append(bytes.data(), static_cast<std::size_t>(count));
        const auto parsed = parse_proxy_line(heard);
        if (!parsed) {
            co_return false;
        }
        line = *parsed;
        const std::size_t used = (line ? line->bytes : heard.size()) - before;
        const auto taken = ::recv(transport_.socket().native_handle(), bytes.data(), used, 0);
        if (taken != static_cast<ssize_t>(used)) {
            co_return false;
        }
    }
    wait_for_ever();
    co_return !line->client || be_client(*line->client);
}

// False: its address has too many connections.
bool Connection::be_client(const asio::ip::address& client) {
    const asio::ip::address address =
        client.is_v6() && client.to_v6().is_v4_mapped()
            ? asio::ip::make_address_v4(asio::ip::v4_mapped, client.to_v6())
            : client;
    peer_ = address.to_string();
    is_proxy_ = shard_.state.proxies.trusts(address);
    if (!is_proxy_) {
        stranger_share_ = shard_.state.strangers.take(address);
    }
    const bool has_room = is_proxy_ || !stranger_share_.empty();
    if (!has_room) {
        shard_.state.connections_refused.fetch_add(1, std::memory_order_relaxed);
    }
    return has_room;
}

}  // namespace comfyd::net
