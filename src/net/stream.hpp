// Internal to net: one byte stream type over plain TCP or TLS, so that everything above it is
// compiled once. Not for sharing between executors.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/sockets.hpp"

namespace comfyd::net {

class Stream {
public:
    using executor_type = Executor;
    using Tls = asio::ssl::stream<Socket&>;

    explicit Stream(Socket socket) : socket_(std::make_shared<Socket>(std::move(socket))) {}

    // Call once, after connecting and before the handshake.
    void start_tls(asio::ssl::context& context) { tls_ = std::make_unique<Tls>(*socket_, context); }
    Tls* tls() { return tls_.get(); }

    Socket& socket() { return *socket_; }
    executor_type get_executor() { return socket_->get_executor(); }
    void close() {
        error_code ignored;
        socket_->close(ignored);
    }

    // A peer that is told to go may keep the connection for this long at most.
    void close_after(std::chrono::milliseconds limit) {
        closing_ = std::make_unique<Timer>(get_executor(), limit);
        closing_->async_wait([weak = std::weak_ptr<Socket>(socket_)](const error_code& error) {
            const auto socket = weak.lock();
            if (socket && !error) {
                error_code ignored;
                socket->close(ignored);
            }
        });
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
    std::shared_ptr<Socket>
        socket_;  // at a fixed address, because tls_ refers to it; the timer looks at it
    std::unique_ptr<Tls> tls_;
    std::unique_ptr<Timer> closing_;
};

}  // namespace comfyd::net
