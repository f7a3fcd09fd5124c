// The bus over a Redis server: its channels are the inboxes. One connection sends, another listens;
// the bus is up while both are.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "cluster/bus.hpp"
#include "cluster/redis/client.hpp"
#include "cluster/redis/subscriber.hpp"

namespace comfyd::cluster {

class RedisBus final : public Bus {
public:
    // Nodes of the same `cluster` reach each other; others on the same server do not disturb them.
    RedisBus(Executor executor, redis::Url url, std::string cluster, NodeId self);
    ~RedisBus() override;

    // For other uses of the server, on its executor.
    redis::Client& client() { return client_; }
    // Every key and channel of the cluster begins so.
    const std::string& prefix() const { return prefix_; }

    NodeId self() const override { return self_; }
    Executor executor() const override { return executor_; }
    void listen(Listener listener) override;
    void start() override;
    Task<> stop() override;
    void send(NodeId to, std::string message) override;
    void tell_all(std::string message) override;
    bool is_up() const override { return is_up_; }
    std::string problem() const override;
    std::optional<CircuitBreaker::State> breaker() const override;
    BusCounts counts() const override;

private:
    void publish(std::string channel, std::string message);
    void hear(std::string message);
    void turn(bool is_up, const Error& why);

    const Executor executor_;
    const std::string name_;  // of the server, without secrets
    const std::string prefix_;
    const NodeId self_;
    Listener listener_;
    std::optional<Code> complained_of_;  // while it is down

    std::atomic<bool> is_up_ = false;
    std::atomic<std::uint64_t> sent_ = 0;
    std::atomic<std::uint64_t> received_ = 0;
    std::atomic<std::uint64_t> dropped_ = 0;
    std::atomic<std::uint64_t> losses_ = 0;
    mutable Mutex mutex_;
    std::string problem_ COMFYD_GUARDED_BY(mutex_) = "no connection yet";

    redis::Client client_;
    redis::Subscriber subscriber_;
};

}  // namespace comfyd::cluster
