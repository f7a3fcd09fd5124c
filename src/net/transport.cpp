// With OpenSSL on the socket itself, not asio::ssl::stream: that one has no call that does not
// wait, and copies all bytes once more.
#include "net/transport.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/error.hpp>

namespace comfyd::net {

Transport::Transport(Socket socket, const std::shared_ptr<SSL_CTX>& context)
    : socket_(std::move(socket)), tls_(context ? SSL_new(context.get()) : nullptr, SSL_free) {
    if (tls_) {
        SSL_set_fd(tls_.get(), socket_.native_handle());
        SSL_set_accept_state(tls_.get());
    }
}

error_code Transport::judge(int answer) {
    switch (SSL_get_error(tls_.get(), answer)) {
        case SSL_ERROR_WANT_READ:
            wanted_ = Socket::wait_read;
            return asio::error::would_block;
        case SSL_ERROR_WANT_WRITE:
            wanted_ = Socket::wait_write;
            return asio::error::would_block;
        case SSL_ERROR_ZERO_RETURN:
            return asio::error::eof;
        case SSL_ERROR_SYSCALL:
            return asio::error::connection_reset;
        default:
            break;
    }
    const unsigned long reason = ERR_peek_last_error();
    was_plain_http_ =
        ERR_GET_LIB(reason) == ERR_LIB_SSL && ERR_GET_REASON(reason) == SSL_R_HTTP_REQUEST;
    ERR_clear_error();
    return {static_cast<int>(reason), asio::error::get_ssl_category()};
}

Task<error_code> Transport::wait_for_peer() {
    error_code error;
    co_await socket_.async_wait(wanted_, asio::redirect_error(kAwait, error));
    co_return error;
}

Task<error_code> Transport::handshake() {
    error_code error = asio::error::would_block;
    while (tls_ && error == asio::error::would_block) {
        ERR_clear_error();
        const int answer = SSL_do_handshake(tls_.get());
        if (answer == 1) {
            break;
        }
        error = judge(answer);
        if (error == asio::error::would_block) {
            const error_code waited = co_await wait_for_peer();
            if (waited) {
                co_return waited;
            }
        }
    }
    co_return error == asio::error::would_block ? error_code() : error;
}

Task<Transport::Moved> Transport::read_some(asio::mutable_buffer into) {
    return tls_ ? read_tls(into) : socket_.async_read_some(into, asio::as_tuple(kAwait));
}

Task<Transport::Moved> Transport::read_tls(asio::mutable_buffer into) {
    while (true) {
        error_code error;
        const std::size_t count = read_now(into, error);
        if (error != asio::error::would_block) {
            co_return Moved(error, count);
        }
        const error_code waited = co_await wait_for_peer();
        if (waited) {
            co_return Moved(waited, 0);
        }
    }
}

std::size_t Transport::read_now(asio::mutable_buffer into, error_code& error) {
    if (!tls_) {
        return socket_.read_some(into, error);
    }
    ERR_clear_error();
    std::size_t count = 0;
    const int answer = SSL_read_ex(tls_.get(), into.data(), into.size(), &count);
    error = answer == 1 ? error_code() : judge(answer);
    return count;
}

std::size_t Transport::write_now(
    std::span<const asio::const_buffer> pieces, int flags, error_code& error
) {
    if (!tls_) {
        return socket_.send(pieces, flags, error);
    }
    error = {};
    for (const asio::const_buffer& piece : pieces) {
        if (piece.size() == 0) {
            continue;
        }
        ERR_clear_error();
        std::size_t count = 0;
        const int answer = SSL_write_ex(tls_.get(), piece.data(), piece.size(), &count);
        error = answer == 1 ? error_code() : judge(answer);
        return count;
    }
    return 0;
}

Task<error_code> Transport::writable() {
    if (!tls_) {
        wanted_ = Socket::wait_write;
    }
    return wait_for_peer();
}

void Transport::end() {
    if (tls_ && SSL_is_init_finished(tls_.get()) != 0) {
        ERR_clear_error();
        SSL_shutdown(tls_.get());
        ERR_clear_error();
    }
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
}

void Transport::close() {
    error_code ignored;
    socket_.close(ignored);
}

Stream Transport::into_stream() && {
    Stream stream(std::move(socket_));
    if (tls_) {
        stream.go_on_with_tls(tls_.release());
    }
    return stream;
}

}  // namespace comfyd::net
