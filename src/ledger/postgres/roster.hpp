// The table of cluster::Roster.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/roster.hpp"
#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

class SignIn final : public WriteOf<Time> {
public:
    SignIn(NodeId node, const json::object& about) : node_(node), about_(json::serialize(about)) {}
    std::size_t bytes() const override { return 128 + about_.size(); }
    bool join(Batch& batch) override;
    void conclude(const Batch& batch) override;

private:
    NodeId node_;
    std::string about_;
    std::size_t place_ = 0;
};

class SignOut final : public WriteOf<void> {
public:
    explicit SignOut(NodeId node) : node_(node) {}
    std::size_t bytes() const override { return 128; }
    bool join(Batch& batch) override;
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    NodeId node_;
};

Statement find_roster();
Result<cluster::RosterEntry> read_roster_entry(const Row& row);

}  // namespace comfyd::ledger::postgres
