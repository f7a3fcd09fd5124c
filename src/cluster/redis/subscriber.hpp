// Messages of some channels of a Redis server. What is sent while the connection is broken is lost:
// whoever listens is told of that.
//
// Belongs to one executor: all members there, and the callbacks are called there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "cluster/redis/line.hpp"

namespace comfyd::cluster::redis {

class Subscriber {
public:
    struct Listener {
        std::function<void(std::string message)> heard;
        // Whether messages come has changed, or why they do not.
        std::function<void(bool is_up, const Error& why)> turned;
    };

    Subscriber(Executor executor, Url url, std::vector<std::string> channels, Listener listener);

    void start() { line_.start(); }
    Task<> stop() { return line_.stop(); }

    // The server has confirmed every channel.
    bool is_up() const { return line_.is_open() && confirmed_ == channels_.size(); }
    CircuitBreaker::State breaker() const { return line_.breaker(); }  // any thread

private:
    void hear(Reply reply);

    const std::vector<std::string> channels_;
    const Listener listener_;
    std::size_t confirmed_ = 0;
    Line line_;
};

}  // namespace comfyd::cluster::redis
