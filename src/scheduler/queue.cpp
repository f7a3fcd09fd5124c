#include "scheduler/queue.hpp"

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "base/assert.hpp"

namespace comfyd::scheduler {
namespace {

struct Key {
    int negated_priority;
    JobId job;
    friend auto operator<=>(const Key&, const Key&) = default;
};

// An ordered set that also knows the rank of a key: libstdc++'s, because std::set cannot count in
// log n.
using OrderedSet = __gnu_pbds::tree<
    Key,
    __gnu_pbds::null_type,
    std::less<>,
    __gnu_pbds::rb_tree_tag,
    __gnu_pbds::tree_order_statistics_node_update>;

}  // namespace

struct ReadyQueue::Group {
    std::string requirement;
    OrderedSet jobs;
};

ReadyQueue::ReadyQueue() = default;
ReadyQueue::~ReadyQueue() = default;

void ReadyQueue::add(const JobId& job, int priority, const std::string& requirement) {
    auto& group = groups_[requirement];
    if (!group) {
        group = std::make_unique<Group>(Group{requirement, {}});
    }
    const bool added = entries_.emplace(job, Entry{group.get(), priority}).second;
    COMFYD_ASSERT(added);
    group->jobs.insert(Key{-priority, job});
}

bool ReadyQueue::remove(const JobId& job) {
    const auto found = entries_.find(job);
    if (found == entries_.end()) {
        return false;
    }
    Group* group = found->second.group;
    group->jobs.erase(Key{-found->second.priority, job});
    entries_.erase(found);
    if (group->jobs.empty()) {
        groups_.erase(std::string(group->requirement));
    }
    return true;
}

bool ReadyQueue::contains(const JobId& job) const {
    return entries_.contains(job);
}
const std::string& ReadyQueue::requirement_of(const JobId& job) const {
    return entries_.at(job).group->requirement;
}
int ReadyQueue::priority_of(const JobId& job) const {
    return entries_.at(job).priority;
}
std::size_t ReadyQueue::size() const {
    return entries_.size();
}

std::optional<int> ReadyQueue::position(const JobId& job) const {
    const auto found = entries_.find(job);
    if (found == entries_.end()) {
        return std::nullopt;
    }
    const Key key{-found->second.priority, job};
    std::size_t ahead = 0;
    for (const auto& [requirement, group] : groups_) {
        ahead += group->jobs.order_of_key(key);
    }
    return static_cast<int>(ahead) + 1;
}

std::optional<Placement> ReadyQueue::place(const std::vector<const Candidate*>& candidates) const {
    if (candidates.empty() || entries_.empty()) {
        return std::nullopt;
    }
    std::optional<Key> best;
    std::size_t best_worker = 0;
    for (const auto& [requirement, group] : groups_) {
        if (best && *best < *group->jobs.begin()) {
            continue;
        }
        std::optional<std::size_t> least_loaded;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if ((!least_loaded || candidates[i]->load() < candidates[*least_loaded]->load()) &&
                candidates[i]->can_run(requirement)) {
                least_loaded = i;
            }
        }
        if (least_loaded) {
            best = *group->jobs.begin();
            best_worker = *least_loaded;
        }
    }
    if (!best) {
        return std::nullopt;
    }
    return Placement{best->job, best_worker};
}

}  // namespace comfyd::scheduler
