// What the order of jobs tells: places, first jobs, jobs that are alike.
#include <algorithm>
#include <cmath>
#include <map>

#include "scheduler/order.hpp"

namespace comfyd::scheduler {
namespace {

// One of several that take turns: it has `jobs` of which each moves its time on by `step`.
struct Rival {
    double time;
    std::uint64_t stamp;
    double step;
    std::size_t jobs;
};

// How many of its jobs start before the time `until` is reached by one with this stamp.
std::size_t jobs_before(const Rival& rival, double until, std::uint64_t stamp) {
    const double turns = (until - rival.time) / rival.step;
    constexpr double kSlack = 1e-6;
    if (turns < -kSlack) {
        return 0;
    }
    double count = std::floor(turns + kSlack);
    const bool is_tie = std::abs(turns - count) <= kSlack;
    if (!is_tie || rival.stamp < stamp) {
        count += 1;
    }
    return count >= static_cast<double>(rival.jobs) ? rival.jobs : static_cast<std::size_t>(count);
}

double mean_of(const Amount& amount) {
    const double mean = amount.jobs == 0 ? 0 : amount.seconds / static_cast<double>(amount.jobs);
    return std::max(mean, kSecondsMin);
}

}  // namespace

JobKeys Order::keys_of(const JobId& job) const {
    const Entry& entry = entries_.at(job);
    const Lane& lane = lanes_[entry.lane];
    const Flow& flow = flows_[lane.flow];
    const Group& group = groups_[lane.group];
    JobKeys keys;
    keys.priority = entry.priority;
    keys.grounds = entry.grounds;
    keys.batch = flow.wait_class == WaitClass::batch;
    keys.tenant = tenants_[flow.tenant].name;
    keys.fairness_key = flow.key;
    keys.profile = profiles_[group.profile].profile;
    keys.queued_at = from_unix_ms(entry.queued_ms);
    keys.avoid = group.avoid;
    keys.content = entry.content;
    return keys;
}

Time Order::queued_at(const JobId& job) const {
    return from_unix_ms(entries_.at(job).queued_ms);
}

Index Order::profile_of(const JobId& job) const {
    return groups_[lanes_[entries_.at(job).lane].group].profile;
}

std::size_t Order::lane_size(Index lane) const {
    return lanes_[lane].jobs->size();
}

JobId Order::job_at(Index lane, std::size_t position) const {
    return lanes_[lane].jobs->find_by_order(position)->job;
}

std::vector<JobId> Order::alike(Index profile, WaitClass lowest, std::size_t limit) const {
    const auto found = lanes_of_profile_.find(profile);
    std::vector<JobId> jobs;
    if (found == lanes_of_profile_.end() || limit == 0) {
        return jobs;
    }
    struct Candidate {
        WaitClass wait_class;
        Turn turn;
        Index lane;
    };
    std::vector<Candidate> lanes;
    for (const Index lane : found->second) {
        const Flow& flow = flows_[lanes_[lane].flow];
        if (flow.wait_class <= lowest && !tenants_[flow.tenant].at_limit()) {
            lanes.push_back({flow.wait_class, turn_of(lanes_[lane]), lane});
        }
    }
    const std::size_t kept = std::min(lanes.size(), limit);
    std::partial_sort(
        lanes.begin(),
        lanes.begin() + static_cast<std::ptrdiff_t>(kept),
        lanes.end(),
        [](const Candidate& a, const Candidate& b) {
            return a.wait_class != b.wait_class ? a.wait_class < b.wait_class : a.turn < b.turn;
        }
    );
    lanes.resize(kept);
    // One of each lane in turn, so that a long one does not keep the others out.
    for (std::size_t depth = 0; jobs.size() < limit; ++depth) {
        const std::size_t before = jobs.size();
        for (const Candidate& candidate : lanes) {
            const JobTree& tree = *lanes_[candidate.lane].jobs;
            if (depth < tree.size() && jobs.size() < limit) {
                jobs.push_back(tree.find_by_order(depth)->job);
            }
        }
        if (jobs.size() == before) {
            break;
        }
    }
    return jobs;
}

Amount Order::in_turn(WaitClass wait_class, Index anchor) const {
    const auto& anchors = classes_[at(wait_class)].anchors;
    return anchor < anchors.size() && anchors[anchor] ? anchors[anchor]->waiting : Amount{};
}

Order::Place Order::place(const JobId& job, std::map<std::string, Amount>* by_tenant) const {
    const Entry& entry = entries_.at(job);
    const Lane& lane = lanes_[entry.lane];
    const Flow& flow = flows_[lane.flow];
    const Tenant& tenant = tenants_[flow.tenant];
    const Account& account = tenant.accounts[at(flow.wait_class)];
    Place place;
    place.wait_class = flow.wait_class;
    place.profile = groups_[lane.group].profile;
    place.group = lane.group;
    place.queued_at = from_unix_ms(entry.queued_ms);
    place.tenant_at_limit = tenant.at_limit();
    place.tenant_hold = tenant.terms.hold;
    const JobTurn key{order_of(entry.priority, flow.wait_class, place.queued_at), job};
    Amount ahead;  // of the same tenant
    for (const Index other : flow.lanes) {
        const std::size_t jobs = lanes_[other].jobs->order_of_key(key);
        ahead.jobs += jobs;
        ahead.seconds += static_cast<double>(jobs) * std::max(lanes_[other].job_s, kSecondsMin);
    }
    const double key_until = flow.time + ahead.seconds;
    for (const Index other_at : account.flows) {
        const Flow& other = flows_[other_at];
        if (&other != &flow) {
            const Rival rival{other.time, other.stamp, mean_of(other.waiting), other.waiting.jobs};
            const std::size_t jobs = jobs_before(rival, key_until, flow.stamp);
            ahead.jobs += jobs;
            ahead.seconds += static_cast<double>(jobs) * rival.step;
        }
    }
    const double until = account.time + ahead.seconds / tenant.terms.weight;
    const auto tell = [by_tenant](const Tenant& who, const Amount& what) {
        if (by_tenant != nullptr && what.jobs > 0) {
            (*by_tenant)[who.name] = what;
        }
    };
    tell(tenant, ahead);
    place.ahead = ahead.jobs;
    place.ahead_s = ahead.seconds;
    for (const Index other_at : classes_[at(flow.wait_class)].tenants) {
        const Tenant& other = tenants_[other_at];
        if (other_at == flow.tenant || other.is_held()) {
            continue;
        }
        const Account& theirs = other.accounts[at(flow.wait_class)];
        const double mean = mean_of(theirs.waiting);
        const Rival rival{
            theirs.time, theirs.stamp, mean / other.terms.weight, theirs.waiting.jobs
        };
        const std::size_t jobs = jobs_before(rival, until, account.stamp);
        const Amount amount{jobs, static_cast<double>(jobs) * mean};
        tell(other, amount);
        place.ahead += amount.jobs;
        place.ahead_s += amount.seconds;
    }
    return place;
}

}  // namespace comfyd::scheduler
