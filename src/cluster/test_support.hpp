// For the tests of cluster: nodes on one thread, in virtual time, over a bus in memory.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/task.hpp"
#include "base/virtual_time.hpp"
#include "cluster/local_bus.hpp"

namespace comfyd::cluster::test {

inline NodeId node_id(int number) {
    NodeId id;
    id.uuid.bytes[15] = static_cast<std::uint8_t>(number);
    return id;
}

// Time that passes when a test says so.
class World {
public:
    boost::asio::io_context io{1};
    VirtualTime time{io, Time(Millis(1'700'000'000'000))};
    LocalExchange exchange{io.get_executor()};

    Executor executor() { return io.get_executor(); }

    // Until all who could go on have.
    void settle() {
        io.restart();
        while (io.poll() > 0) {
        }
    }
    void pass(Millis span) {
        settle();
        const Time end = time.now() + span;
        while (time.next() && *time.next() <= end) {
            time.advance_to(*time.next());
            settle();
        }
        time.advance_to(end);
        settle();
    }
    // A task that ends without time passing.
    template <class T>
    T run(Task<T> task) {
        std::optional<T> value;
        boost::asio::co_spawn(io, std::move(task), [&value](std::exception_ptr failure, T result) {
            if (!failure) {
                value.emplace(std::move(result));
            }
        });
        settle();
        if (!value) {
            throw std::runtime_error("the task did not end");
        }
        return std::move(*value);
    }
    void finish(Task<> task) {
        bool is_done = false;
        boost::asio::co_spawn(io, std::move(task), [&is_done](const std::exception_ptr&) {
            is_done = true;
        });
        settle();
        if (!is_done) {
            throw std::runtime_error("the task did not end");
        }
    }
};

}  // namespace comfyd::cluster::test
