// Whose turn it is: the queues of classes and of anchors, and what is left out of them for a while.
#include <utility>

#include "scheduler/order.hpp"

namespace comfyd::scheduler {

FlowTurn Order::turn_of(const Flow& flow) const {
    const Account& account = tenants_[flow.tenant].accounts[at(flow.wait_class)];
    return FlowTurn{account.time, account.stamp, flow.time, flow.stamp};
}

Turn Order::turn_of(const Lane& lane) const {
    return Turn{turn_of(flows_[lane.flow]), lane.head};
}

void Order::push_flow(FairQueue& queue, Index flow) {
    const auto found = queue.parts.find(flow);
    if (found == queue.parts.end() || found->second.queued) {
        return;
    }
    FairQueue::Part& part = found->second;
    if (part.lanes.empty()) {
        queue.parts.erase(found);
        return;
    }
    part.turn = turn_of(flows_[flow]);
    part.queued = true;
    queue.flows.push(part.turn, flow);
}

void Order::push_lane(FairQueue& queue, Index lane_at) {
    Lane& lane = lanes_[lane_at];
    FairQueue::Part& part = queue.parts[lane.flow];
    lane.pushed[queue.which] = lane.head;
    part.lanes.push(lane.pushed[queue.which], lane_at);
    const Flow& flow = flows_[lane.flow];
    if (part.queued) {
        if (const FlowTurn turn = turn_of(flow); turn < part.turn) {
            // The place of a flow that is gone.
            part.turn = turn;
            queue.flows.push(turn, lane.flow);
        }
    } else if (tenants_[flow.tenant].at_limit()) {
        tenants_[flow.tenant].parked.emplace_back(&queue, lane.flow);
    } else {
        push_flow(queue, lane.flow);
    }
}

std::optional<Index> Order::top_flow(FairQueue& queue, int looks) {
    std::optional<Index> best;
    while (!queue.flows.empty()) {
        const auto entry = queue.flows.top();
        const auto found = queue.parts.find(entry.index);
        if (found == queue.parts.end() || !found->second.queued ||
            found->second.turn != entry.key) {
            queue.flows.pop();
            continue;
        }
        FairQueue::Part& part = found->second;
        Tenant& tenant = tenants_[flows_[entry.index].tenant];
        if (tenant.at_limit()) {
            queue.flows.pop();
            part.queued = false;
            tenant.parked.emplace_back(&queue, entry.index);
            continue;
        }
        const FlowTurn turn = turn_of(flows_[entry.index]);
        const bool is_right = !(entry.key < turn);
        const bool may_be_best = is_right || !best || turn < queue.parts[*best].turn;
        if (may_be_best && !top_lane(queue, part)) {
            queue.flows.pop();
            queue.parts.erase(found);
            continue;
        }
        if (is_right) {
            return entry.index;
        }
        queue.flows.pop();
        part.turn = turn;
        queue.flows.push(turn, entry.index);
        if (may_be_best) {
            best = entry.index;
        }
        if (--looks < 0) {
            return best;
        }
    }
    return std::nullopt;
}

std::optional<Index> Order::top_lane(const FairQueue& queue, FairQueue::Part& part) {
    while (!part.lanes.empty()) {
        const auto entry = part.lanes.top();
        Lane& lane = lanes_[entry.index];
        if (!lane.live || lane.pushed[queue.which] != entry.key ||
            (queue.which == 0 && lane.parked)) {
            part.lanes.pop();
            continue;
        }
        const JobTurn& head = lane.head;
        if (head == entry.key) {
            return entry.index;
        }
        part.lanes.pop();
        lane.pushed[queue.which] = head;
        part.lanes.push(head, entry.index);
    }
    return std::nullopt;
}

std::optional<Order::Head> Order::first(WaitClass wait_class) {
    std::optional<Head> first;
    visit(wait_class, [&first](const Head& head) {
        first = head;
        return Visit::stop;
    });
    return first;
}

void Order::unblock(Index group_at) {
    Group& group = groups_[group_at];
    if (!group.live || !group.blocked) {
        return;
    }
    group.blocked = false;
    const std::vector<Index> parked = std::move(group.parked);
    group.parked.clear();
    for (const Index lane : parked) {
        // Its place may have been given to a lane of another group meanwhile.
        if (lanes_[lane].live && lanes_[lane].parked && lanes_[lane].group == group_at) {
            lanes_[lane].parked = false;
            push_lane(classes_[at(group.wait_class)].all, lane);
        }
    }
}

void Order::unblock_anchor(Index anchor) {
    for (Class& c : classes_) {
        if (const auto found = c.deferred.find(anchor); found != c.deferred.end()) {
            const std::vector<Index> groups = std::move(found->second);
            c.deferred.erase(found);
            for (const Index group : groups) {
                unblock(group);
            }
        }
    }
}

void Order::unblock_all() {
    unblock_if([](Index) { return true; });
    for (Class& c : classes_) {
        const auto deferred = std::move(c.deferred);
        c.deferred.clear();
        for (const auto& [anchor, groups] : deferred) {
            for (const Index group : groups) {
                unblock(group);
            }
        }
    }
}

void Order::unpark(Tenant& tenant) {
    const auto parked = std::move(tenant.parked);
    tenant.parked.clear();
    for (const auto& [queue, flow] : parked) {
        push_flow(*queue, flow);
    }
}

}  // namespace comfyd::scheduler
