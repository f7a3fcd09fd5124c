// How a Connection reads the body of a request.
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "net/request_parser.hpp"
#include "net/server_connection.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
// A client that announces much and sends little costs no more memory than what it sent, doubled.
constexpr std::size_t kGrowBytes = 64 * 1024;

}  // namespace

tl::unexpected<Error> Connection::too_large(std::uint64_t bytes_max) {
    keep_alive_ = false;
    return fail(
        Code::payload_too_large,
        "the request body is larger than " + std::to_string(bytes_max) + " bytes"
    );
}

tl::unexpected<Error> Connection::body_failure(const error_code& error) {
    keep_alive_ = false;
    if (expired_) {
        expired_ = false;
        return fail(Code::request_timeout, "the request body did not arrive in time");
    }
    if (error == asio::error::operation_aborted) {
        return fail(Code::cancelled, "the server shuts down");
    }
    peer_closed_ = true;
    return fail(Code::connection_failed, "the client closed the connection: " + error.message());
}

// False when all bodies together would be too large.
bool Connection::hold_body(std::uint64_t bytes) {
    auto& all = shard_.state.bodies_bytes;
    if (all.fetch_add(bytes) + bytes > shard_.state.limits.bodies_bytes_max) {
        all.fetch_sub(bytes);
        return false;
    }
    body_held_ += bytes;
    return true;
}

void Connection::let_body_go() {
    shard_.state.bodies_bytes.fetch_sub(std::exchange(body_held_, 0));
}

// Before the first byte of the body is read.
Task<Result<>> Connection::expect_body() {
    body_started_ = true;
    body_deadline_ = Ticks::now() + shard_.state.limits.body_timeout;
    const bool announce = continue_expected_ && buffer_.empty();
    continue_expected_ = false;
    if (!announce) {
        co_return Result<>();
    }
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    auto sent = co_await flush({{asio::const_buffer(kContinue.data(), kContinue.size())}});
    co_return sent;
}

Task<Result<std::string>> Connection::read_body(std::uint64_t bytes_max) {
    bytes_max = std::min(bytes_max, shard_.state.limits.body_bytes_max);
    std::string body;
    if (body_ == Body::sized) {
        if (body_left_ > bytes_max) {
            co_return too_large(bytes_max);
        }
        if (buffer_.size() >= body_left_) {  // the usual case: it came with the head
            body.assign(buffer_.view().substr(0, body_left_));
            buffer_.consume(body_left_);
            body_ = Body::none;
            continue_expected_ = false;
            co_return body;
        }
    }
    std::size_t filled = 0;
    while (body_ != Body::none) {
        const std::uint64_t expected = body_ == Body::sized ? body_left_ : kGrowBytes;
        const std::uint64_t room = std::min<std::uint64_t>(expected, std::max(filled, kGrowBytes));
        if (!hold_body(room)) {
            keep_alive_ = false;
            co_return fail(
                Code::rate_limited,
                "the server holds too many large requests at this moment: send it again later"
            );
        }
        body.resize(filled + static_cast<std::size_t>(room));
        while (body_ != Body::none && filled < body.size()) {
            const auto count = co_await read_some(body.data() + filled, body.size() - filled);
            if (!count) {
                co_return fail(count.error());
            }
            filled += *count;
            if (filled > bytes_max) {
                co_return too_large(bytes_max);
            }
        }
    }
    body.resize(filled);
    co_return body;
}

Task<Result<std::size_t>> Connection::read_some(char* into, std::size_t into_bytes) {
    COMFYD_ASSERT(into_bytes > 0);
    if (body_ == Body::none) {
        co_return std::size_t{0};
    }
    const auto stop = co_await is_cancelled();
    if (stop || aborted_) {
        keep_alive_ = false;
        co_return fail(Code::cancelled, "the server shuts down");
    }
    if (!body_started_) {
        auto begun = co_await expect_body();
        if (!begun) {
            co_return fail(std::move(begun.error()));
        }
    }
    deadline_ = std::min(body_deadline_, Ticks::now() + shard_.state.limits.stall_timeout);
    auto count =
        body_ == Body::sized ? read_sized(into, into_bytes) : read_chunked(into, into_bytes);
    auto result = co_await std::move(count);
    wait_for_ever();
    co_return result;
}

Task<Result<std::size_t>> Connection::read_sized(char* into, std::size_t into_bytes) {
    if (body_received_ + body_left_ > shard_.state.limits.body_bytes_max) {
        co_return too_large(shard_.state.limits.body_bytes_max);
    }
    std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(into_bytes, body_left_));
    if (!buffer_.empty()) {
        count = std::min(count, buffer_.size());
        std::memcpy(into, buffer_.view().data(), count);
        buffer_.consume(count);
    } else {
        const auto [error, received] = co_await transport_.read_some(asio::buffer(into, count));
        if (error) {
            co_return body_failure(error);
        }
        count = received;
    }
    body_left_ -= count;
    body_received_ += count;
    if (body_left_ == 0) {
        body_ = Body::none;
    }
    co_return count;
}

Task<Result<std::size_t>> Connection::read_chunked(char* into, std::size_t into_bytes) {
    parser_->set_sink(into, into_bytes);
    while (true) {
        error_code error;
        bool progress = false;
        if (!buffer_.empty()) {
            const auto unread = buffer_.view();
            const std::size_t used =
                parser_->put(asio::const_buffer(unread.data(), unread.size()), error);
            buffer_.consume(used);
            progress = used > 0;
        }
        const bool overlong = error == http::error::need_more &&
                              buffer_.size() > shard_.state.limits.header_bytes_max;
        if (overlong || (error && error != http::error::need_more)) {
            keep_alive_ = false;
            co_return fail(Code::invalid_argument, "the request body is not validly chunked");
        }
        const std::size_t count = parser_->delivered();
        body_received_ += count;
        if (body_received_ > shard_.state.limits.body_bytes_max) {
            co_return too_large(shard_.state.limits.body_bytes_max);
        }
        if (parser_->is_done()) {
            body_ = Body::none;
        }
        if (count > 0 || parser_->is_done()) {
            co_return count;
        }
        if (progress && !error) {
            continue;
        }
        const auto [failure, read] = co_await transport_.read_some(buffer_.prepare(kReadBytes));
        if (failure) {
            co_return body_failure(failure);
        }
        buffer_.commit(read);
    }
}

}  // namespace comfyd::net
