// Where nodes have nothing to reach each other by: it is never up, and they poll the ledger.
#pragma once

#include <string>

#include "cluster/bus.hpp"

namespace comfyd::cluster {

class NoBus final : public Bus {
public:
    NoBus(Executor executor, NodeId self) : executor_(executor), self_(self) {}

    NodeId self() const override { return self_; }
    Executor executor() const override { return executor_; }
    void listen(Listener) override {}
    void start() override {}
    Task<> stop() override { co_return; }
    void send(NodeId, std::string) override {}
    void tell_all(std::string) override {}
    bool is_up() const override { return false; }
    std::string problem() const override { return "no Redis is configured"; }
    BusCounts counts() const override { return {}; }

private:
    const Executor executor_;
    const NodeId self_;
};

}  // namespace comfyd::cluster
