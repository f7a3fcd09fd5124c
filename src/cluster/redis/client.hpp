// Commands to a Redis server over one connection, pipelined: none waits for the answer to another.
//
// Belongs to one executor: all members there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/task.hpp"
#include "cluster/redis/line.hpp"

namespace comfyd::cluster::redis {

class Client {
public:
    static constexpr Millis kPatience{2'000};
    static constexpr std::size_t kInFlightMax = 100'000;

    // Whether the server is there has changed, or why it is not.
    using Turned = std::function<void(bool is_up, const Error& why)>;

    Client(Executor executor, Url url, Turned turned);

    void start() { line_.start(); }
    Task<> stop();

    bool is_up() const { return line_.is_open(); }
    CircuitBreaker::State breaker() const { return line_.breaker(); }  // any thread

    // Code::connection_failed: the server is not there, or went away before it answered; the
    // command may have been carried out then. Code::queue_full: too much waits.
    // Code::request_timeout; Code::cancelled; Code::upstream_error: it refuses, and says why.
    Task<Result<Reply>> command(std::vector<std::string> words, Deadline deadline);
    Task<Result<Reply>> command(std::vector<std::string> words) {
        return command(std::move(words), Deadline::in(kPatience));
    }
    // For whom the answer does not matter. False: it is not sent.
    bool post(const std::vector<std::string>& words);

private:
    struct Pending;

    bool put(const std::vector<std::string>& words, std::shared_ptr<Pending> pending);
    void hear(Reply reply);
    void fail_all();

    const Executor executor_;
    Turned turned_;
    std::deque<std::shared_ptr<Pending>> in_flight_;  // null: nobody waits for the answer
    bool has_complained_ = false;
    Line line_;
};

}  // namespace comfyd::cluster::redis
