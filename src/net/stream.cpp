#include "net/stream.hpp"

namespace comfyd::net {

void Stream::start_tls(asio::ssl::context& context) {
    tls_ = std::make_unique<Tls>(*socket_, context);
}

void Stream::go_on_with_tls(SSL* session) {
    tls_ = std::make_unique<Tls>(*socket_, session);
}

void Stream::close() {
    error_code ignored;
    socket_->close(ignored);
}

void Stream::close_after(std::chrono::milliseconds limit) {
    closing_ = std::make_unique<Timer>(get_executor(), limit);
    closing_->async_wait([weak = std::weak_ptr<Socket>(socket_)](const error_code& error) {
        const auto socket = weak.lock();
        if (socket && !error) {
            error_code ignored;
            socket->close(ignored);
        }
    });
}

void Stream::read_some(const BuffersToFill& buffers, IoHandler handler) {
    if (tls_) {
        tls_->async_read_some(buffers, std::move(handler));
    } else {
        socket_->async_read_some(buffers, std::move(handler));
    }
}

void Stream::write_some(const BuffersToSend& buffers, IoHandler handler) {
    if (tls_) {
        tls_->async_write_some(buffers, std::move(handler));
    } else {
        socket_->async_write_some(buffers, std::move(handler));
    }
}

}  // namespace comfyd::net
