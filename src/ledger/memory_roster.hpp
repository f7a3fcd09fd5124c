// The list of nodes in memory, by the same contract as in PostgreSQL, for tests. One executor.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "cluster/roster.hpp"

namespace comfyd::ledger {

class MemoryRoster final : public cluster::Roster {
public:
    // `clock` is the database's own, and outlives it.
    explicit MemoryRoster(const Clock& clock) : clock_(clock) {}

    Task<Result<Time>> sign_in(NodeId node, json::object about) override {
        const Time now = clock_.now();
        std::erase_if(rows_, [&](const Row& row) {
            return row.seen_at < now - cluster::kRosterKeeps;
        });
        const auto known = std::ranges::find(rows_, node, &Row::node);
        Row& row = known == rows_.end() ? rows_.emplace_back() : *known;
        row = {node, std::move(about), now};
        co_return now;
    }
    Task<Result<>> sign_out(NodeId node) override {
        std::erase_if(rows_, [&](const Row& row) { return row.node == node; });
        co_return Result<>();
    }
    Task<Result<std::vector<cluster::RosterEntry>>> roster() override {
        std::vector<cluster::RosterEntry> entries;
        for (const Row& row : rows_) {
            entries.push_back({row.node, row.about, clock_.now() - row.seen_at});
        }
        co_return entries;
    }

private:
    struct Row {
        NodeId node;
        json::object about;
        Time seen_at;
    };

    const Clock& clock_;
    std::vector<Row> rows_;  // those that were seen first come first
};

}  // namespace comfyd::ledger
