// Internal to net: one byte stream type over plain TCP or TLS, so that everything above it is
// compiled once. Not for sharing between executors.
#pragma once

#include <memory>
#include <utility>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "net/io_handler.hpp"
#include "net/sockets.hpp"

namespace comfyd::net {

class Stream {
public:
    using executor_type = Executor;
    using Tls = asio::ssl::stream<Socket&>;

    explicit Stream(Socket socket) : socket_(std::make_shared<Socket>(std::move(socket))) {}

    // Call once, after connecting and before the handshake.
    void start_tls(asio::ssl::context& context);
    // In place of start_tls(): takes over a session whose handshake is done.
    void go_on_with_tls(SSL* session);
    Tls* tls() { return tls_.get(); }

    Socket& socket() { return *socket_; }
    executor_type get_executor() { return socket_->get_executor(); }
    void close();
    // A peer that is told to go may keep the connection for this long at most.
    void close_after(std::chrono::milliseconds limit);

    template <class Buffers, class Token>
    auto async_read_some(const Buffers& buffers, Token&& token) {
        return asio::async_initiate<Token, void(error_code, std::size_t)>(
            [](auto handler, Stream* self, BuffersToFill to_fill) {
                self->read_some(to_fill, IoHandler(std::move(handler), self->get_executor()));
            },
            token,
            this,
            BuffersToFill(buffers)
        );
    }

    template <class Buffers, class Token>
    auto async_write_some(const Buffers& buffers, Token&& token) {
        return asio::async_initiate<Token, void(error_code, std::size_t)>(
            [](auto handler, Stream* self, BuffersToSend to_send) {
                self->write_some(to_send, IoHandler(std::move(handler), self->get_executor()));
            },
            token,
            this,
            BuffersToSend(buffers)
        );
    }

private:
    void read_some(const BuffersToFill& buffers, IoHandler handler);
    void write_some(const BuffersToSend& buffers, IoHandler handler);

    std::shared_ptr<Socket>
        socket_;  // at a fixed address, because tls_ refers to it; the timer looks at it
    std::unique_ptr<Tls> tls_;
    std::unique_ptr<Timer> closing_;
};

}  // namespace comfyd::net
