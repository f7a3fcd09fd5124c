// One schedule of a cluster: nodes are stopped, killed and cut off, the database restarts, clocks
// are set, at random; then all heals, and every job must come to its end. All that happens depends
// on the seed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulation/leases/node.hpp"
#include "simulation/leases/world.hpp"

namespace comfyd::simulation {

class LeaseSchedule {
public:
    LeaseSchedule(std::uint64_t seed, Break left_out, bool keeps_journal);
    ~LeaseSchedule();

    // What was not as it must be; nullopt: all went well.
    std::optional<std::string> run();

    // Parts of it, for tests that lead it themselves: nothing but what they do happens.
    void be_calm() { world_.has_trouble = false; }
    void pass(Millis time);
    Node* find_leader();
    void stop(Node& node) { node.stop(); }
    void kill(Node& node);
    const LeaseRules& rules() const { return world_.rules; }

private:
    void act();
    void act_on_node();
    void act_on_session();
    void act_on_database();
    void act_on_machine();
    void heal();

    void start_node();
    void on_session_ended(const NodeId& id, int session);
    void remove_ended();
    Node* find(const NodeId& id);
    bool go_on(Time until);

    LeaseWorld world_;
    std::set<int> silent_;  // sessions whose end their node does not hear of
    std::vector<std::unique_ptr<Node>> nodes_;
    int started_ = 0;
};

}  // namespace comfyd::simulation
