#include "scheduler/order.hpp"

#include <cmath>
#include <cstring>
#include <map>

#include "base/assert.hpp"

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

}  // namespace

Order::Order(ProfileTable& profiles) : profiles_(profiles) {
    for (Class& c : classes_) {
        c.all.which = 0;
    }
}
Order::~Order() = default;

void Order::set_tenant(const std::string& name, TenantTerms terms) {
    Tenant& tenant = tenants_[tenant_index(name)];
    terms.weight = terms.weight > 0 ? terms.weight : 1;
    tenant.terms = terms;
    if (!tenant.at_limit()) {
        unpark(tenant);
    }
}

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
    Index index = static_cast<Index>(flows_.size());
    if (free_flows_.empty()) {
        flows_.emplace_back();
    } else {
        index = free_flows_.back();
        free_flows_.pop_back();
    }
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
    Index index = static_cast<Index>(groups_.size());
    if (free_groups_.empty()) {
        groups_.emplace_back();
    } else {
        index = free_groups_.back();
        free_groups_.pop_back();
    }
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
    Index index = static_cast<Index>(lanes_.size());
    if (free_lanes_.empty()) {
        lanes_.emplace_back();
    } else {
        index = free_lanes_.back();
        free_lanes_.pop_back();
    }
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

// A tenant or a key that had nothing waiting starts where the others are: time in which it did not
// ask is not saved up.
void Order::begin_waiting(Index flow_at) {
    Flow& flow = flows_[flow_at];
    Tenant& tenant = tenants_[flow.tenant];
    Class& c = classes_[at(flow.wait_class)];
    Account& account = tenant.accounts[at(flow.wait_class)];
    if (account.waiting.jobs == 0) {
        const auto head = first(flow.wait_class);
        const double others = head ? head->turn.flow.tenant_time : c.time;
        if (others > account.time) {
            account.time = others;
            account.credit = 0;
        }
        account.stamp = ++stamp_;
        account.listed_at = c.tenants.size();
        c.tenants.push_back(flow.tenant);
    }
    if (flow.waiting.jobs == 0) {
        if (account.key_time > flow.time) {
            flow.time = account.key_time;
            flow.credit = 0;
        }
        flow.stamp = ++stamp_;
        flow.listed_at = account.flows.size();
        account.flows.push_back(flow_at);
    }
}

void Order::count(Lane& lane, int jobs) {
    Flow& flow = flows_[lane.flow];
    Class& c = classes_[at(flow.wait_class)];
    Account& account = tenants_[flow.tenant].accounts[at(flow.wait_class)];
    Group& group = groups_[lane.group];
    for (Amount* amount :
         {&flow.waiting, &c.waiting, &account.waiting, &c.anchors[group.anchor]->waiting}) {
        amount->jobs += static_cast<std::size_t>(jobs);
        amount->seconds = amount->jobs == 0 ? 0 : amount->seconds + jobs * lane.job_s;
    }
}

void Order::recount(Lane& lane) {
    const double job_s = profiles_.usual_s(groups_[lane.group].profile);
    if (job_s != lane.job_s) {
        const int jobs = static_cast<int>(lane.jobs->size());
        count(lane, -jobs);
        lane.job_s = job_s;
        count(lane, jobs);
    }
}

void Order::add(const JobId& job, const JobKeys& keys) {
    const WaitClass wait_class = wait_class_of(keys.priority, keys.batch);
    const Index flow_at = flow_index(wait_class, tenant_index(keys.tenant), keys.fairness_key);
    const Index lane_at = lane_index(flow_at, profiles_.intern(keys.profile), keys.avoid);
    const bool added = entries_
                           .emplace(
                               job,
                               Entry{
                                   to_unix_ms(keys.queued_at),
                                   lane_at,
                                   static_cast<std::uint8_t>(keys.priority),
                                   keys.grounds
                               }
                           )
                           .second;
    COMFYD_ASSERT(added);
    begin_waiting(flow_at);
    Lane& lane = lanes_[lane_at];
    recount(lane);
    lane.jobs->insert(JobTurn{order_of(keys.priority, wait_class, keys.queued_at), job});
    count(lane, 1);
    if (lane.jobs->begin()->job == job) {
        lane.head = *lane.jobs->begin();
        Class& c = classes_[at(wait_class)];
        push_lane(*c.anchors[groups_[lane.group].anchor], lane_at);
        if (!lane.parked) {
            push_lane(c.all, lane_at);
        }
    }
    unblock(lane.group);
}

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
        if (lanes_[lane].live && lanes_[lane].parked) {
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

void Order::erase(std::unordered_map<JobId, Entry>::iterator entry) {
    const Index lane_at = entry->second.lane;
    Lane& lane = lanes_[lane_at];
    const Flow& flow = flows_[lane.flow];
    recount(lane);
    lane.jobs->erase(JobTurn{
        order_of(entry->second.priority, flow.wait_class, from_unix_ms(entry->second.queued_ms)),
        entry->first
    });
    count(lane, -1);
    entries_.erase(entry);
    Account& account = tenants_[flow.tenant].accounts[at(flow.wait_class)];
    if (flow.waiting.jobs == 0) {
        const Index last = account.flows.back();
        account.flows[flow.listed_at] = last;
        flows_[last].listed_at = flow.listed_at;
        account.flows.pop_back();
    }
    if (account.waiting.jobs == 0) {
        auto& tenants = classes_[at(flow.wait_class)].tenants;
        const Index last = tenants.back();
        tenants[account.listed_at] = last;
        tenants_[last].accounts[at(flow.wait_class)].listed_at = account.listed_at;
        tenants.pop_back();
    }
    if (lane.jobs->empty()) {
        drop_lane(lane_at);
    } else {
        lane.head = *lane.jobs->begin();
    }
}

bool Order::remove(const JobId& job) {
    const auto entry = entries_.find(job);
    if (entry == entries_.end()) {
        return false;
    }
    erase(entry);
    return true;
}

void Order::charge(Index flow_at, double seconds) {
    Flow& flow = flows_[flow_at];
    Tenant& tenant = tenants_[flow.tenant];
    Account& account = tenant.accounts[at(flow.wait_class)];
    Class& c = classes_[at(flow.wait_class)];
    seconds = std::max(seconds, kSecondsMin);
    c.time = std::max(c.time, account.time);
    account.key_time = std::max(account.key_time, flow.time);
    const auto pay = [seconds](double& credit) {
        const double paid = std::min(credit, seconds - kSecondsMin);
        credit -= paid;
        return seconds - paid;
    };
    account.time += pay(account.credit) / tenant.terms.weight;
    flow.time += pay(flow.credit);
    account.stamp = ++stamp_;
    flow.stamp = ++stamp_;
    tenant.running += 1;
}

Order::Owner Order::take(const JobId& job, double seconds) {
    const auto entry = entries_.find(job);
    COMFYD_ASSERT(entry != entries_.end());
    const Index flow_at = lanes_[entry->second.lane].flow;
    Owner owner{flows_[flow_at].wait_class, flows_[flow_at].tenant, flows_[flow_at].key};
    charge(flow_at, seconds);
    erase(entry);
    return owner;
}

Order::Owner Order::charge(const JobKeys& keys, double seconds) {
    const WaitClass wait_class = wait_class_of(keys.priority, keys.batch);
    const Index tenant = tenant_index(keys.tenant);
    charge(flow_index(wait_class, tenant, keys.fairness_key), seconds);
    return Owner{wait_class, tenant, keys.fairness_key};
}

// Times only grow, on which the heaps rely: what was charged too much is paid back with the next
// charge.
void Order::settle(const Owner& owner, double charged, double actual) {
    Tenant& tenant = tenants_[owner.tenant];
    Account& account = tenant.accounts[at(owner.wait_class)];
    const double more = std::max(actual, kSecondsMin) - std::max(charged, kSecondsMin);
    Flow& flow = flows_[flow_index(owner.wait_class, owner.tenant, owner.key)];
    if (more > 0) {
        account.time += more / tenant.terms.weight;
        flow.time += more;
    } else {
        account.credit -= more;
        flow.credit -= more;
    }
    tenant.running -= 1;
    if (!tenant.at_limit() && !tenant.parked.empty()) {
        unpark(tenant);
    }
}

}  // namespace comfyd::scheduler
