// Internal to net: the concrete socket types, and the buffer that bytes from a peer land in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/task.hpp"

namespace comfyd::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// TCP and unix sockets differ in how they are named and in nothing else.
using StreamProtocol = asio::generic::stream_protocol;
using SocketName = StreamProtocol::endpoint;
using Socket = asio::basic_stream_socket<StreamProtocol, Executor>;
using Acceptor = asio::basic_socket_acceptor<StreamProtocol, Executor>;
using Resolver = asio::ip::basic_resolver<tcp, Executor>;
using Ticks = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Ticks, asio::wait_traits<Ticks>, Executor>;

inline constexpr asio::use_awaitable_t<Executor> kAwait{};

// A contiguous queue of bytes. Holds no memory until the first prepare() and after release().
class ReadBuffer {
public:
    std::size_t size() const { return end_ - begin_; }
    bool empty() const { return begin_ == end_; }
    std::string_view view() const { return {data_.get() + begin_, size()}; }

    // Room for at least one more byte; a full buffer doubles.
    asio::mutable_buffer prepare(std::size_t initial_bytes) {
        if (end_ == capacity_) {
            make_room(initial_bytes);
        }
        return {data_.get() + end_, capacity_ - end_};
    }
    void commit(std::size_t count) { end_ += count; }
    void consume(std::size_t count) {
        begin_ += count;
        if (begin_ == end_) {
            begin_ = end_ = 0;
        }
    }
    // Gives the memory back when nothing is in it.
    void release() {
        if (empty()) {
            data_.reset();
            capacity_ = 0;
        }
    }

private:
    void make_room(std::size_t initial_bytes) {
        const std::size_t used = size();
        if (used * 2 <= capacity_ && capacity_ != 0) {
            std::memmove(data_.get(), data_.get() + begin_, used);
        } else {
            const std::size_t wanted = std::max(initial_bytes, capacity_ * 2);
            std::unique_ptr<char[]> bigger(new char[wanted]);
            if (used != 0) {
                std::memcpy(bigger.get(), data_.get() + begin_, used);
            }
            data_ = std::move(bigger);
            capacity_ = wanted;
        }
        begin_ = 0;
        end_ = used;
    }

    std::unique_ptr<char[]> data_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace comfyd::net
