// Buses of several nodes in one process, for tests and simulations, which decide what becomes of
// each message. Everything on one executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/bus.hpp"

namespace comfyd::cluster {

class LocalBus;

// What the nodes' buses are connected to. Outlives them.
class LocalExchange {
public:
    enum class Fate { arrives, is_lost, waits };
    using Decide = std::function<Fate(const NodeId& from, const NodeId& to)>;

    explicit LocalExchange(Executor executor) : executor_(executor) {}

    // At first all messages arrive.
    void decide(Decide decide) { decide_ = std::move(decide); }
    // Those that wait arrive now, in their order.
    void deliver_waiting();
    // The node's bus goes down, or comes up again.
    void cut_off(const NodeId& node, bool is_cut_off);

private:
    friend class LocalBus;

    void carry(const NodeId& from, const NodeId& to, std::string message);
    void deliver(const NodeId& from, const NodeId& to, std::string message);

    struct Waiting {
        NodeId from;
        NodeId to;
        std::string message;
    };

    const Executor executor_;
    Decide decide_;
    std::map<NodeId, LocalBus*> buses_;
    std::vector<Waiting> waiting_;
};

class LocalBus final : public Bus {
public:
    LocalBus(LocalExchange& exchange, NodeId self);
    ~LocalBus() override;

    NodeId self() const override { return self_; }
    Executor executor() const override { return exchange_.executor_; }
    void listen(Listener listener) override { listener_ = std::move(listener); }
    void start() override { turn(true); }
    Task<> stop() override;
    void send(NodeId to, std::string message) override;
    void tell_all(std::string message) override;
    bool is_up() const override { return is_up_; }
    std::string problem() const override { return is_up_ ? "" : "it is cut off"; }
    BusCounts counts() const override { return counts_; }

private:
    friend class LocalExchange;

    void turn(bool is_up);
    bool may_send(const std::string& message);

    LocalExchange& exchange_;
    const NodeId self_;
    Listener listener_;
    bool is_up_ = false;
    BusCounts counts_;
};

}  // namespace comfyd::cluster
