// How a Connection learns that its client has gone while an answer is being made or streamed.
#include <boost/asio/bind_cancellation_slot.hpp>

#include "net/server_connection.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 4096;
constexpr std::size_t kPipelinedBytesMax = 64 * 1024;

}  // namespace

Task<bool> Connection::wait_closed(Millis until) {
    const auto self = shared_from_this();
    if (peer_closed_ || aborted_) {
        co_return true;
    }
    if (!closed_) {
        closed_.emplace(shard_.executor);
    }
    // While a body is unread, what arrives is no sign of anything.
    if (body_ == Body::none && !watching_) {
        start_watch();
    }
    co_await closed_->wait_for(until);
    co_return peer_closed_ || aborted_;
}

void Connection::start_watch() {
    watching_ = true;
    transport_.socket().async_wait(
        Socket::wait_read,
        asio::bind_cancellation_slot(
            watch_cancel_.slot(),
            [self = shared_from_this(), generation = watch_generation_](const error_code& error) {
                self->on_readable(generation, error);
            }
        )
    );
}

void Connection::stop_watch() {
    if (watching_) {
        watching_ = false;
        ++watch_generation_;
        watch_cancel_.emit(asio::cancellation_type::terminal);
    }
}

// Pipelined requests are kept for later; the end of the stream is what we are after.
void Connection::on_readable(std::uint64_t generation, const error_code& error) {
    if (generation != watch_generation_ || !watching_) {
        return;
    }
    watching_ = false;
    if (error == asio::error::operation_aborted) {
        return;
    }
    error_code read_error;
    while (!read_error && buffer_.size() < kPipelinedBytesMax) {
        buffer_.commit(transport_.read_now(buffer_.prepare(kReadBytes), read_error));
    }
    buffer_.release();
    if (read_error == asio::error::would_block) {
        start_watch();
        return;
    }
    peer_closed_ = true;
    closed_->notify();
}

}  // namespace comfyd::net
