// The port through which the nodes of a cluster reach each other: an inbox for each node, and one
// for all. It only carries hints. Messages may be lost, when the bus is down or a node too slow;
// those of one sender to one receiver keep their order. Nothing that must not be lost is sent this
// way alone.
//
// A bus lives on an executor of its own. Members may be called on any thread; the listener is
// called on the bus's executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/circuit_breaker.hpp"
#include "base/id.hpp"
#include "base/task.hpp"

namespace comfyd::cluster {

struct BusCounts {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t dropped = 0;  // not sent: too large, too many, or the bus was down
    std::uint64_t losses = 0;   // times that it went down
};

class Bus {
public:
    // Larger messages are dropped.
    static constexpr std::size_t kMessageBytesMax = 8 * 1024 * 1024;

    struct Listener {
        std::function<void(NodeId from, std::string message)> heard;
        // At first it is down.
        std::function<void(bool is_up)> turned;
    };

    virtual ~Bus() = default;

    virtual NodeId self() const = 0;
    virtual Executor executor() const = 0;

    // Once, before start().
    virtual void listen(Listener listener) = 0;
    // Both on its executor.
    virtual void start() = 0;
    virtual Task<> stop() = 0;

    virtual void send(NodeId to, std::string message) = 0;
    // To every node but this one.
    virtual void tell_all(std::string message) = 0;

    virtual bool is_up() const = 0;
    // Why it is down, for a person; empty when it is up.
    virtual std::string problem() const = 0;
    // Of the server that carries messages; nullopt: there is none.
    virtual std::optional<CircuitBreaker::State> breaker() const { return std::nullopt; }
    virtual BusCounts counts() const = 0;
};

}  // namespace comfyd::cluster
