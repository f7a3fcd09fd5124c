// Internal to net: who waits for bytes and which bytes, without their types. Each step of Beast's
// and of TLS's operations is a type of its own, and all that is below it would be compiled again
// for each.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/buffer.hpp>

#include "net/sockets.hpp"

namespace comfyd::net {

// The completion handler of one read or write; runs and is cancelled as the one within.
class IoHandler {
public:
    using executor_type = Executor;
    using cancellation_slot_type = asio::cancellation_slot;

    template <class Handler>
    IoHandler(Handler handler, const Executor& of_the_stream)
        : executor_(asio::get_associated_executor(handler, of_the_stream)),
          slot_(asio::get_associated_cancellation_slot(handler)),
          held_(std::make_unique<Holder<Handler>>(std::move(handler))) {}

    executor_type get_executor() const noexcept { return executor_; }
    cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

    void operator()(const error_code& error, std::size_t count) {
        Held& held = *held_;
        held.complete(std::move(held_), error, count);
    }

private:
    struct Held {
        virtual ~Held() = default;
        virtual void complete(
            std::unique_ptr<Held> self, const error_code& error, std::size_t count
        ) = 0;
    };
    template <class Handler>
    struct Holder final : Held {
        explicit Holder(Handler of) : handler(std::move(of)) {}
        void complete(std::unique_ptr<Held> self, const error_code& error, std::size_t count)
            override {
            Handler last = std::move(handler);
            self.reset();  // its memory is free for the operation that comes next
            last(error, count);
        }
        Handler handler;
    };

    Executor executor_;
    asio::cancellation_slot slot_;
    std::unique_ptr<Held> held_;
};

// The first of a sequence of buffers: no operation must take them all.
template <class Buffer>
class FewBuffers {
public:
    static constexpr std::size_t kMax = 16;

    template <class Buffers>
    explicit FewBuffers(const Buffers& buffers) {
        const auto end = asio::buffer_sequence_end(buffers);
        for (auto at = asio::buffer_sequence_begin(buffers); at != end && count_ < kMax; ++at) {
            const Buffer buffer(*at);
            if (buffer.size() != 0) {
                buffers_[count_++] = buffer;
            }
        }
    }

    using value_type = Buffer;
    using const_iterator = const Buffer*;
    const_iterator begin() const { return buffers_.data(); }
    const_iterator end() const { return buffers_.data() + count_; }

private:
    std::array<Buffer, kMax> buffers_;
    std::size_t count_ = 0;
};
using BuffersToFill = FewBuffers<asio::mutable_buffer>;
using BuffersToSend = FewBuffers<asio::const_buffer>;

}  // namespace comfyd::net
