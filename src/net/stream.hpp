// Internal to net: one byte stream type over plain TCP or TLS, so that everything above it is compiled
// once. Not for sharing between executors.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <utility>

#include "net/sockets.hpp"

namespace comfyd::net {

class Stream {
public:
    using executor_type = Executor;
    using Tls = asio::ssl::stream<Socket&>;

    explicit Stream(Socket socket) : socket_(std::make_unique<Socket>(std::move(socket))) {}

    // Call once, after connecting and before the handshake.
    void start_tls(asio::ssl::context& context) { tls_ = std::make_unique<Tls>(*socket_, context); }
    Tls* tls() { return tls_.get(); }

    Socket& socket() { return *socket_; }
    executor_type get_executor() { return socket_->get_executor(); }
    void close() {
        error_code ignored;
        socket_->close(ignored);
    }

    template <class Buffers, class Token>
    auto async_read_some(const Buffers& buffers, Token&& token) {
        if (tls_) {
            return tls_->async_read_some(buffers, std::forward<Token>(token));
        }
        return socket_->async_read_some(buffers, std::forward<Token>(token));
    }

    template <class Buffers, class Token>
    auto async_write_some(const Buffers& buffers, Token&& token) {
        if (tls_) {
            return tls_->async_write_some(buffers, std::forward<Token>(token));
        }
        return socket_->async_write_some(buffers, std::forward<Token>(token));
    }

private:
    std::unique_ptr<Socket> socket_;  // at a fixed address, because tls_ refers to it
    std::unique_ptr<Tls> tls_;
};

}  // namespace comfyd::net
