// Turns what a worker says while it runs a prompt into full progress snapshots. Pure; owned by one
// attempt.
//
// The value is the part of the expected time that is behind us: nodes count by what they are
// expected to take, the one that runs by its steps, and those whose results the worker still had
// count nothing. It never goes back and stays below 1: the end is not for the messages to decide.
// Nodes that the workflow does not have (made by expansion) count as the node that they are shown
// as.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "comfy/messages.hpp"
#include "jobs/job.hpp"

namespace comfyd::fleet {

class ProgressTracker {
public:
    using Costs = std::map<std::string, double, std::less<>>;

    // `prompt`: the API-format map. `costs`: of each of its nodes, in any unit; those that are not
    // there cost nothing. Empty: all cost the same.
    explicit ProgressTracker(const json::object& prompt, Costs costs = {});

    // All return whether the snapshot changed.
    bool apply(const comfy::Message& message);
    bool cached(const std::vector<std::string>& nodes);
    bool executing(const std::string& node);
    bool stepped(const std::string& node, double value, double max);
    bool finished(const std::string& node);

    const jobs::Progress& snapshot() const { return snapshot_; }
    // Empty for a node that the workflow does not have.
    std::string class_of(std::string_view node) const;

private:
    bool apply_state(const comfy::ProgressState& state);
    void finish(const std::string& node);
    void set_current(const std::string& node);
    void set_fraction(const std::string& node, double value, double max);
    double cost_of(std::string_view node) const;
    bool update();

    Costs costs_;
    double cost_total_ = 0;  // of the nodes that are run
    double cost_done_ = 0;
    std::map<std::string, std::string, std::less<>> classes_;  // of the workflow's nodes
    std::set<std::string, std::less<>> done_;
    std::map<std::string, double, std::less<>> fractions_;  // of nodes that run
    bool states_seen_ = false;  // the worker tells which nodes have finished
    jobs::Progress next_;
    jobs::Progress snapshot_;
};

}  // namespace comfyd::fleet
