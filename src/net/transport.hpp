// Internal to net: the bytes of a server's connection, plain or under TLS. Everything is tried at
// once; only what the socket does not give or take is waited for.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <span>
#include <tuple>

#include "net/sockets.hpp"
#include "net/stream.hpp"

namespace comfyd::net {

class Transport {
public:
    using Moved = std::tuple<error_code, std::size_t>;

    // `context`: nullptr for plain bytes.
    Transport(Socket socket, const std::shared_ptr<SSL_CTX>& context);

    bool is_tls() const { return tls_ != nullptr; }
    Socket& socket() { return socket_; }

    // Before anything else; at once where there is no TLS.
    Task<error_code> handshake();
    // The handshake failed because the client does not speak TLS but HTTP.
    bool was_plain_http() const { return was_plain_http_; }

    Task<Moved> read_some(asio::mutable_buffer into);
    Task<error_code> writable();
    // error::would_block when there is nothing now. `flags` as of send(2).
    std::size_t read_now(asio::mutable_buffer into, error_code& error);
    std::size_t write_now(std::span<const asio::const_buffer> pieces, int flags, error_code& error);

    // Tells the peer that nothing follows.
    void end();
    void close();
    // For a WebSocket. Nothing else may be done with it after that.
    Stream into_stream() &&;

private:
    Task<Moved> read_tls(asio::mutable_buffer into);
    Task<error_code> wait_for_peer();
    // What OpenSSL's answer means; would_block: wait_for_peer() helps.
    error_code judge(int answer);

    Socket socket_;
    std::unique_ptr<SSL, void (*)(SSL*)> tls_;
    Socket::wait_type wanted_ = Socket::wait_read;
    bool was_plain_http_ = false;
};

}  // namespace comfyd::net
