// The lanes, flows and groups that jobs are sorted into: each is made when a job first needs it,
// found by what its jobs have in common, and given up when it is empty.
#include <algorithm>
#include <utility>

#include "scheduler/order.hpp"

namespace comfyd::scheduler {
namespace {

constexpr std::size_t kIdleFlowsKept = 10'000;

void append(std::string& name, Index index) {
    name.append(reinterpret_cast<const char*>(&index), sizeof index);
}

void append(std::string& name, const std::vector<std::string>& avoid) {
    for (const std::string& worker : avoid) {
        name += worker;
        name += '\0';
    }
}

// One that is free, else a new one at the end.
template <class T>
Index take_place(std::vector<T>& all, std::vector<Index>& free) {
    if (free.empty()) {
        all.emplace_back();
        return static_cast<Index>(all.size() - 1);
    }
    const Index index = free.back();
    free.pop_back();
    return index;
}

}  // namespace

Index Order::tenant_index(const std::string& name) {
    const auto [found, is_new] = tenant_names_.emplace(name, static_cast<Index>(tenants_.size()));
    if (is_new) {
        tenants_.emplace_back();
        tenants_.back().name = name;
    }
    return found->second;
}

Index Order::flow_index(WaitClass wait_class, Index tenant, const std::string& key) {
    std::string name(1, static_cast<char>('0' + static_cast<int>(wait_class)));
    append(name, tenant);
    name += key;
    if (const auto found = flow_names_.find(name); found != flow_names_.end()) {
        return found->second;
    }
    if (flow_names_.size() > kIdleFlowsKept + 2 * lanes_.size()) {
        forget_idle_flows();
    }
    const Index index = take_place(flows_, free_flows_);
    Flow flow;
    flow.wait_class = wait_class;
    flow.tenant = tenant;
    flow.key = key;
    flows_[index] = std::move(flow);
    flow_names_.emplace(std::move(name), index);
    return index;
}

// Keys come and go (a user, a session); what one that has no jobs is ahead by is soon forgotten.
void Order::forget_idle_flows() {
    for (auto it = flow_names_.begin(); it != flow_names_.end();) {
        if (flows_[it->second].lanes.empty()) {
            free_flows_.push_back(it->second);
            it = flow_names_.erase(it);
        } else {
            ++it;
        }
    }
    std::sort(free_flows_.begin(), free_flows_.end());
}

Index Order::group_index(
    WaitClass wait_class, Index profile, const std::vector<std::string>& avoid
) {
    std::string name(1, static_cast<char>('0' + static_cast<int>(wait_class)));
    append(name, profile);
    append(name, avoid);
    if (const auto found = group_names_.find(name); found != group_names_.end()) {
        profiles_.release(profile);  // the group has its own use of it
        return found->second;
    }
    const Index index = take_place(groups_, free_groups_);
    Group group;
    group.live = true;
    group.wait_class = wait_class;
    group.profile = profile;
    group.anchor = profiles_[profile].anchor;
    group.avoid = avoid;
    group.found_by = name;
    Class& c = classes_[at(wait_class)];
    if (c.anchors.size() <= group.anchor) {
        c.anchors.resize(group.anchor + 1);
    }
    if (!c.anchors[group.anchor]) {
        c.anchors[group.anchor] = std::make_unique<FairQueue>();
    }
    groups_[index] = std::move(group);
    group_names_.emplace(std::move(name), index);
    return index;
}

Index Order::lane_index(Index flow, Index profile, const std::vector<std::string>& avoid) {
    std::string name;
    append(name, flow);
    append(name, profile);
    append(name, avoid);
    if (const auto found = lane_names_.find(name); found != lane_names_.end()) {
        profiles_.release(profile);
        return found->second;
    }
    const Index index = take_place(lanes_, free_lanes_);
    Lane lane;
    lane.live = true;
    lane.flow = flow;
    lane.group = group_index(flows_[flow].wait_class, profile, avoid);
    lane.job_s = profiles_.usual_s(profile);
    lane.jobs = std::make_unique<JobTree>();
    lane.found_by = name;
    groups_[lane.group].lanes += 1;
    lanes_[index] = std::move(lane);
    lanes_of_profile_[profile].push_back(index);
    flows_[flow].lanes.push_back(index);
    lane_names_.emplace(std::move(name), index);
    return index;
}

void Order::drop_lane(Index lane_at) {
    Lane& lane = lanes_[lane_at];
    std::erase(flows_[lane.flow].lanes, lane_at);
    Group& group = groups_[lane.group];
    auto& alike = lanes_of_profile_[group.profile];
    std::erase(alike, lane_at);
    if (alike.empty()) {
        lanes_of_profile_.erase(group.profile);
    }
    lane_names_.erase(lane.found_by);
    group.lanes -= 1;
    if (group.lanes == 0) {
        group_names_.erase(group.found_by);
        profiles_.release(group.profile);
        free_groups_.push_back(lane.group);
        group = Group{};
    }
    lane = Lane{};
    free_lanes_.push_back(lane_at);
}

}  // namespace comfyd::scheduler
