// Whose turn it is among the jobs that wait. Knows nothing of workers. Owned by the scheduler.
//
// Every job is in a lane: those of one class, tenant, fairness key and profile, in the order of
// priority and age. The lanes of one class, tenant and key form a flow. Flows take turns by the
// GPU-seconds that they have had, in the queue of their class and in those of the models (anchors)
// that their jobs need. What flows have had only grows, so that the heaps are put right when
// something is looked up, and nothing is done as time passes.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "base/id.hpp"
#include "scheduler/profile_table.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::scheduler {

// Also a job that costs nothing moves its tenant's time on, so that tenants take turns.
inline constexpr double kSecondsMin = 0.001;

// What jobs of one flow are ordered by.
inline std::int64_t order_of(int priority, WaitClass wait_class, Time queued_at) {
    // Inside a class a step of priority is worth one wait target of age.
    return to_unix_ms(queued_at) - priority * wait_target(wait_class).count();
}

// Smaller goes first.
struct FlowTurn {
    double tenant_time = 0;  // GPU-seconds that the tenant has had, by its weight
    std::uint64_t tenant_stamp = 0;
    double key_time = 0;
    std::uint64_t key_stamp = 0;

    friend auto operator<=>(const FlowTurn&, const FlowTurn&) = default;
};
struct JobTurn {
    std::int64_t order = 0;  // when the job came, less what its priority is worth
    JobId job{};

    friend auto operator<=>(const JobTurn&, const JobTurn&) = default;
};
struct Turn {
    FlowTurn flow;
    JobTurn job;

    friend auto operator<=>(const Turn&, const Turn&) = default;
};

// The smallest on top.
template <class Key>
class MinHeap {
public:
    struct Entry {
        Key key;
        Index index = 0;
    };
    bool empty() const { return entries_.empty(); }
    std::size_t size() const { return entries_.size(); }
    const Entry& top() const { return entries_.front(); }
    void push(const Key& key, Index index) {
        entries_.push_back({key, index});
        std::push_heap(entries_.begin(), entries_.end(), is_later);
    }
    void pop() {
        std::pop_heap(entries_.begin(), entries_.end(), is_later);
        entries_.pop_back();
    }

private:
    static bool is_later(const Entry& a, const Entry& b) { return b.key < a.key; }
    std::vector<Entry> entries_;
};

class Order {
public:
    // block: nobody can take it now; defer: it waits for a worker that has its models.
    enum class Visit { go_on, block, defer, stop };

    struct Head {
        Index group = 0;
        Index lane = 0;
        Turn turn;
    };
    // What take() and the account of a run need to know of a job that has left the queue.
    struct Owner {
        WaitClass wait_class = WaitClass::medium;
        Index tenant = 0;
        std::string key;
    };

    explicit Order(ProfileTable& profiles);
    ~Order();

    void set_tenant(const std::string& tenant, TenantTerms terms);

    void add(const JobId& job, const JobKeys& keys);
    bool remove(const JobId& job);
    bool contains(const JobId& job) const { return entries_.contains(job); }
    JobKeys keys_of(const JobId& job) const;
    Time queued_at(const JobId& job) const;
    Index profile_of(const JobId& job) const;
    std::uint64_t content_of(const JobId& job) const { return entries_.at(job).content; }
    std::size_t size() const { return entries_.size(); }

    // Out of the queue, and its tenant is charged.
    Owner take(const JobId& job, double seconds);
    // A run that was not taken from here.
    Owner charge(const JobKeys& keys, double seconds);
    // It took longer or shorter than it was charged for.
    void settle(const Owner& owner, double charged, double actual);

    // The groups of a class in the order of their turns, each once. Those that `visit` blocks or
    // defers are left out until they are unblocked or a job is added to them.
    template <class F>
    void visit(WaitClass wait_class, F&& visit);
    // The same for those of one anchor, blocked or not; never blocks. With very many tenants it is
    // one of those that have had least, not always the one that has.
    template <class F>
    void visit_anchor(WaitClass wait_class, Index anchor, F&& visit);
    template <class Wanted>
    void unblock_if(Wanted wanted);  // by requirement, and none that was deferred
    void unblock_all();
    void unblock(Index group);
    void unblock_anchor(Index anchor);
    std::optional<Head> first(WaitClass wait_class);

    struct Group {
        bool live = false;
        WaitClass wait_class = WaitClass::medium;
        Index profile = 0;
        Index anchor = 0;
        std::vector<std::string> avoid;
        std::string found_by;
        std::size_t lanes = 0;
        bool blocked = false;
        std::vector<Index> parked;  // its lanes that are left out of the queue of the class
    };
    const Group& group(Index group) const { return groups_[group]; }
    std::size_t lane_size(Index lane) const;
    // REQUIRES: at < lane_size(lane).
    JobId job_at(Index lane, std::size_t at) const;
    // The first jobs of all lanes with this profile, by class and turn; at most `limit` jobs of
    // classes up to `lowest`.
    std::vector<JobId> alike(Index profile, WaitClass lowest, std::size_t limit) const;

    Amount waiting(WaitClass wait_class) const { return classes_[at(wait_class)].waiting; }
    // Without what is held back, like the next.
    Amount in_turn(WaitClass wait_class) const { return classes_[at(wait_class)].in_turn; }
    Amount in_turn(WaitClass wait_class, Index anchor) const;
    // By requirement, without what is held back; those without an entry have nothing waiting.
    const std::vector<Amount>& waiting_by_requirement() const { return by_requirement_; }

    // Jobs of one requirement, class and anchor.
    using KindKey = std::tuple<Index, WaitClass, Index>;
    const std::map<KindKey, Amount>& waiting_by_kind() const { return by_kind_; }
    // Seconds of all that was ever added but for best effort and what was held back, by
    // requirement.
    // What was taken back before anything else came was only asked about, and does not count.
    const std::vector<double>& arrived_s() {
        latest_.reset();  // what was told does not shrink any more
        return arrived_s_;
    }

    struct Place {
        WaitClass wait_class = WaitClass::medium;
        Index profile = 0;
        Index group = 0;
        Time queued_at{};
        bool tenant_at_limit = false;
        std::string tenant_hold{};
        std::size_t ahead = 0;  // in its own class
        double ahead_s = 0;
    };
    // REQUIRES: contains(job). `by_tenant` may be null.
    Place place(const JobId& job, std::map<std::string, Amount>* by_tenant) const;

private:
    static constexpr int kUnlimited = 1'000'000'000;
    static constexpr int kLooksMax = 8;

    static std::size_t at(WaitClass wait_class) { return static_cast<std::size_t>(wait_class); }

    // libstdc++'s, because std::set cannot count in log n.
    using JobTree = __gnu_pbds::tree<
        JobTurn,
        __gnu_pbds::null_type,
        std::less<>,
        __gnu_pbds::rb_tree_tag,
        __gnu_pbds::tree_order_statistics_node_update>;

    struct Entry {
        std::int64_t queued_ms;
        std::uint64_t content;
        Index lane;
        std::uint8_t priority;
        Grounds grounds;
    };
    struct Lane {
        bool live = false;
        Index flow = 0;
        Index group = 0;
        double job_s = 0;  // what each of its jobs counts for in the amounts
        std::unique_ptr<JobTree> jobs;
        JobTurn head;         // of its first job, which is looked at more often than the others
        bool parked = false;  // with its group
        // What it stands under in the queue of its class [0] and of its anchor [1].
        std::array<JobTurn, 2> pushed{};
        std::string found_by;
    };
    struct Flow {  // of one class, tenant and key
        WaitClass wait_class = WaitClass::medium;
        Index tenant = 0;
        std::string key;
        double time = 0;
        std::uint64_t stamp = 0;
        double credit = 0;
        Amount waiting;
        std::vector<Index> lanes;
        std::size_t listed_at = 0;
    };
    struct Account {  // of one tenant in one class
        double time = 0;
        std::uint64_t stamp = 0;
        double credit = 0;
        double key_time = 0;  // of its key that was served last
        Amount waiting;
        std::vector<Index> flows;  // with jobs
        std::size_t listed_at = 0;
    };
    // Flows, and of each the lanes that belong here.
    struct FairQueue {
        std::size_t which = 1;  // 0: of a whole class, 1: of an anchor
        struct Part {
            MinHeap<JobTurn> lanes;
            bool queued = false;  // has an entry in `flows`, with this turn
            FlowTurn turn;
        };
        MinHeap<FlowTurn> flows;
        std::unordered_map<Index, Part> parts;
        Amount waiting;
    };
    struct Tenant {
        std::string name;
        TenantTerms terms;
        std::size_t running = 0;
        std::array<Account, kWaitClasses> accounts;
        std::vector<std::pair<FairQueue*, Index>> parked;  // flows, until fewer of its jobs run

        bool is_held() const { return !terms.hold.empty(); }
        bool at_limit() const {
            return is_held() || (terms.running_max > 0 && running >= terms.running_max);
        }
    };
    struct Class {
        FairQueue all;
        double time = 0;  // of the tenant that was served last
        Amount waiting;
        Amount in_turn;              // of those, without what is held back
        std::vector<Index> tenants;  // with jobs
        std::vector<std::unique_ptr<FairQueue>> anchors;
        std::unordered_map<Index, std::vector<Index>> blocked;   // groups by requirement
        std::unordered_map<Index, std::vector<Index>> deferred;  // groups by anchor
    };

    Index tenant_index(const std::string& name);
    Index flow_index(WaitClass wait_class, Index tenant, const std::string& key);
    Index lane_index(Index flow, Index profile, const std::vector<std::string>& avoid);
    Index group_index(WaitClass wait_class, Index profile, const std::vector<std::string>& avoid);
    void begin_waiting(Index flow);
    void count(Lane& lane, int jobs);
    void count_in_turn(const Lane& lane, int jobs);
    void count_in_turn(const Tenant& tenant, int sign);
    void recount(Lane& lane);
    void drop_lane(Index lane);
    void erase(std::unordered_map<JobId, Entry>::iterator entry);
    void charge(Index flow, double seconds);
    void forget_idle_flows();
    void unpark(Tenant& tenant);
    FlowTurn turn_of(const Flow& flow) const;
    Turn turn_of(const Lane& lane) const;
    void push_flow(FairQueue& queue, Index flow);
    void push_lane(FairQueue& queue, Index lane);
    // The flow whose turn it is, at most `looks` times looking for a better one.
    std::optional<Index> top_flow(FairQueue& queue, int looks);
    // Its first lane. Drops what is out of date.
    std::optional<Index> top_lane(const FairQueue& queue, FairQueue::Part& part);
    template <class F>
    void visit_queue(FairQueue& queue, int looks, F&& visit);

    ProfileTable& profiles_;
    std::array<Class, kWaitClasses> classes_;
    std::unordered_map<JobId, Entry> entries_;
    std::vector<Lane> lanes_;
    std::vector<Index> free_lanes_;
    std::unordered_map<std::string, Index> lane_names_;
    std::vector<Group> groups_;
    std::vector<Index> free_groups_;
    std::unordered_map<std::string, Index> group_names_;
    std::unordered_map<Index, std::vector<Index>> lanes_of_profile_;
    std::vector<Amount> by_requirement_;
    std::map<KindKey, Amount> by_kind_;  // without those of which nothing waits
    std::vector<double> arrived_s_;
    struct Latest {
        JobId job;
        Index requirement = 0;
        double before_s = 0;
    };
    std::optional<Latest> latest_;  // that counts
    std::vector<Flow> flows_;
    std::vector<Index> free_flows_;
    std::unordered_map<std::string, Index> flow_names_;
    std::vector<Tenant> tenants_;
    std::unordered_map<std::string, Index> tenant_names_;
    std::uint64_t stamp_ = 0;
};

template <class F>
void Order::visit_queue(FairQueue& queue, int looks, F&& visit) {
    std::vector<Index> flows_aside;
    std::vector<Index> lanes_aside;
    std::vector<Index> seen;
    bool goes_on = true;
    while (goes_on) {
        const auto flow = top_flow(queue, looks);
        if (!flow) {
            break;
        }
        FairQueue::Part& part = queue.parts[*flow];
        while (const auto lane_at = goes_on ? top_lane(queue, part) : std::nullopt) {
            Lane& lane = lanes_[*lane_at];
            Group& group = groups_[lane.group];
            if (queue.which == 0 && group.blocked) {
                part.lanes.pop();
                lane.parked = true;
                group.parked.push_back(*lane_at);
                continue;
            }
            Visit what = Visit::go_on;
            if (std::find(seen.begin(), seen.end(), lane.group) == seen.end()) {
                what = visit(Head{lane.group, *lane_at, turn_of(lane)});
            }
            if (what != Visit::block && what != Visit::defer) {
                seen.push_back(lane.group);
                part.lanes.pop();
                lanes_aside.push_back(*lane_at);
            }
            goes_on = what != Visit::stop;
        }
        part.queued = false;
        flows_aside.push_back(*flow);
    }
    for (const Index lane : lanes_aside) {
        queue.parts[lanes_[lane].flow].lanes.push(lanes_[lane].pushed[queue.which], lane);
    }
    for (const Index flow : flows_aside) {
        push_flow(queue, flow);
    }
}

template <class F>
void Order::visit(WaitClass wait_class, F&& visit) {
    Class& c = classes_[at(wait_class)];
    visit_queue(c.all, kUnlimited, [&](const Head& head) {
        const Visit what = visit(head);
        Group& group = groups_[head.group];
        if (what == Visit::block) {
            group.blocked = true;
            c.blocked[profiles_[group.profile].requirement].push_back(head.group);
        } else if (what == Visit::defer) {
            group.blocked = true;
            auto& deferred = c.deferred[group.anchor];
            if (std::find(deferred.begin(), deferred.end(), head.group) == deferred.end()) {
                deferred.push_back(head.group);
            }
        }
        return what;
    });
}

template <class F>
void Order::visit_anchor(WaitClass wait_class, Index anchor, F&& visit) {
    Class& c = classes_[at(wait_class)];
    if (anchor < c.anchors.size() && c.anchors[anchor]) {
        visit_queue(*c.anchors[anchor], kLooksMax, visit);
    }
}

template <class Wanted>
void Order::unblock_if(Wanted wanted) {
    for (Class& c : classes_) {
        for (auto it = c.blocked.begin(); it != c.blocked.end();) {
            if (!wanted(it->first)) {
                ++it;
                continue;
            }
            const std::vector<Index> groups = std::move(it->second);
            it = c.blocked.erase(it);
            for (const Index group : groups) {
                unblock(group);
            }
        }
    }
}

}  // namespace comfyd::scheduler
