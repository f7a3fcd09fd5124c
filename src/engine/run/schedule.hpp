// The order in which ComfyUI runs the nodes of a plan, one after the other: sources first, and
// among those that are ready what soon shows a result. Nodes join while it runs, when a lazy input
// turns out to be needed.
//
// A model only: the run may do the work in another order, but tells of it in this one. Not safe for
// concurrent use; the run guards it.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/run/plan.hpp"

namespace comfyd::engine {

// The source of a lazy input runs only when the class asks for it.
bool is_lazy(const PlannedNode& node, const PlannedInput& input);

class Schedule {
public:
    // `units`: for each node a number that nodes of equal keys share.
    Schedule(const Plan& plan, const std::vector<std::size_t>& units);

    // Nodes of this unit have a result, and what they would need does not have to run.
    void settle(std::size_t unit) { settled_[unit] = true; }
    bool is_settled(std::size_t unit) const { return settled_[unit]; }

    // The plan has more nodes, each a unit of its own.
    void grow();

    // Adds a node and what it needs; the nodes that are new.
    std::vector<std::size_t> add(std::size_t node);
    // Makes `node` wait for `source`, one of its lazy inputs; the nodes that are new.
    std::vector<std::size_t> require(std::size_t node, std::size_t source);

    // Makes `node` wait for another one that is in the schedule.
    void wait_for(std::size_t node, std::size_t other) { link(other, node); }

    // The node whose turn it is; the same one until it is removed, set aside or has to wait.
    std::optional<std::size_t> next() const;
    // It has its next turn when no other node has one; of several the first. So it is always told
    // of in the same order, however long they take.
    void set_aside(std::size_t node);
    // It is among the others again.
    void take_back(std::size_t node);
    void remove(std::size_t node);

private:
    // Outputs and asynchronous classes first, then what stands one or two links before outputs.
    enum Rank : unsigned char { first, before_output, two_before_output, other };
    struct Entry {
        bool pending = false;
        std::size_t position = 0;  // in the order of joining
        Rank rank = other;
        std::size_t waits_for = 0;
        std::vector<std::size_t> blocks;
        std::vector<std::size_t> blocked_by;
    };

    void link(std::size_t source, std::size_t node);
    void raise(std::size_t node, Rank rank);
    bool is_output(std::size_t node) const;
    std::pair<Rank, std::size_t> place(std::size_t node) const;

    const Plan& plan_;
    const std::vector<std::size_t>& units_;
    std::vector<bool> settled_;
    std::vector<Entry> entries_;
    std::set<std::pair<Rank, std::size_t>> ready_;  // rank and position
    std::vector<std::size_t> by_position_;
    std::vector<std::size_t> aside_;
};

}  // namespace comfyd::engine
