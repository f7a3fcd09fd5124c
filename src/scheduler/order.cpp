// Jobs come, go and are paid for. order_lanes.cpp keeps what they are sorted into, order_turns.cpp
// knows whose turn it is, order_places.cpp tells how far away that is.
#include "scheduler/order.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace comfyd::scheduler {

namespace {

void change(Amount& amount, int jobs, double job_s) {
    amount.jobs += static_cast<std::size_t>(jobs);
    amount.seconds = amount.jobs == 0 ? 0 : amount.seconds + jobs * job_s;
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
    const bool was_held = tenant.is_held();
    tenant.terms = std::move(terms);
    if (tenant.is_held() != was_held) {
        count_in_turn(tenant, was_held ? 1 : -1);
    }
    if (!tenant.at_limit()) {
        unpark(tenant);
    }
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
    for (Amount* amount : {&flow.waiting, &c.waiting, &account.waiting}) {
        change(*amount, jobs, lane.job_s);
    }
    if (!tenants_[flow.tenant].is_held()) {
        count_in_turn(lane, jobs);
    }
}

// Of which machines are asked for, and models that are loaded there.
void Order::count_in_turn(const Lane& lane, int jobs) {
    const WaitClass wait_class = flows_[lane.flow].wait_class;
    const Group& group = groups_[lane.group];
    const Index requirement = profiles_[group.profile].requirement;
    if (by_requirement_.size() <= requirement) {
        by_requirement_.resize(requirement + 1);
    }
    const auto kind = by_kind_.try_emplace({requirement, wait_class, group.anchor}).first;
    Class& c = classes_[at(wait_class)];
    for (Amount* amount :
         {&c.in_turn,
          &c.anchors[group.anchor]->waiting,
          &by_requirement_[requirement],
          &kind->second}) {
        change(*amount, jobs, lane.job_s);
    }
    if (kind->second.jobs == 0) {
        by_kind_.erase(kind);
    }
}

void Order::count_in_turn(const Tenant& tenant, int sign) {
    for (const Account& account : tenant.accounts) {
        for (const Index flow : account.flows) {
            for (const Index lane : flows_[flow].lanes) {
                count_in_turn(lanes_[lane], sign * static_cast<int>(lanes_[lane].jobs->size()));
            }
        }
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
                                   keys.content,
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
    latest_.reset();
    if (wait_class != WaitClass::batch && !tenants_[flows_[flow_at].tenant].is_held()) {
        const Index requirement = profiles_[groups_[lane.group].profile].requirement;
        arrived_s_.resize(std::max<std::size_t>(arrived_s_.size(), requirement + 1));
        latest_ = Latest{job, requirement, arrived_s_[requirement]};
        arrived_s_[requirement] += lane.job_s;
    }
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
    if (latest_ && latest_->job == job) {
        arrived_s_[latest_->requirement] = latest_->before_s;
        latest_.reset();
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
