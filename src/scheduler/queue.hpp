// The jobs that are ready to run, and which of them goes to which worker next. Pure: no I/O, no
// clock; one owner.
//
// Order: higher priority first, then the older job (ids are made in the order of submission). Jobs
// that need the same node classes form a group, so that finding the next job a worker can run costs
// one look at each group's head, not a walk over the queue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/id.hpp"

namespace comfyd::scheduler {

struct Placement {
    JobId job;
    std::size_t worker = 0;  // index into the candidates
};

// A worker that could take a job now.
class Candidate {
public:
    virtual ~Candidate() = default;
    virtual bool can_run(const std::string& requirement) const = 0;
    virtual double load() const = 0;  // smaller is taken first
};

class ReadyQueue {
public:
    ReadyQueue();
    ~ReadyQueue();

    // REQUIRES: not in the queue already. `priority`: larger goes first.
    void add(const JobId& job, int priority, const std::string& requirement);
    bool remove(const JobId& job);  // false when it is not here
    bool contains(const JobId& job) const;
    // REQUIRES: contains(job).
    const std::string& requirement_of(const JobId& job) const;
    int priority_of(const JobId& job) const;
    std::size_t size() const;
    // 1 = next in the order of the whole queue. nullopt when not in the queue. O(groups * log n).
    std::optional<int> position(const JobId& job) const;

    // The first job in order that one of the candidates can run, and the least loaded of those that
    // can. Stays in the queue until removed.
    std::optional<Placement> place(const std::vector<const Candidate*>& candidates) const;

private:
    struct Group;
    struct Entry {
        Group* group;
        int priority;
    };
    std::unordered_map<JobId, Entry> entries_;
    std::unordered_map<std::string, std::unique_ptr<Group>>
        groups_;  // by requirement; none is empty
};

}  // namespace comfyd::scheduler
