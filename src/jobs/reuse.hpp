// Answering a job with the outputs of another one of the tenant that has the same reuse_key
// (docs/reuse.md): a finished one that the ledger knows, or one that waits or runs at this moment.
//
// Coalescing lives on the core executor and holds no more than ids and keys: of the jobs that do
// the same, one leads and goes through the queue as any other, the rest follow it and are in no
// queue. It is made anew at every start; to the ledger followers are queued jobs.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/task.hpp"
#include "jobs/job.hpp"
#include "jobs/ledger.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// Says whether the bytes of a tenant's outputs are all still stored. Any executor.
using OutputsKept =
    std::function<Task<Result<bool>>(std::string tenant, std::vector<Output> outputs)>;

// A completed job that left something to answer others with.
bool can_answer(const Job& job);

// The finished job whose outputs answer those with this key; nullopt: there is none. `ledger`
// outlives the call.
Task<Result<std::optional<Job>>> find_answer(
    Ledger& ledger, OutputsKept kept, std::string tenant, std::string reuse_key
);

class Coalescing {
public:
    struct Follower {
        JobId job;
        scheduler::JobKeys keys;
    };

    // Who leads those that do the same as the job; nullopt: nobody.
    std::optional<JobId> leader_for(const Job& job) const;
    // REQUIRES: nobody leads them yet, or the job itself does.
    void lead(const Job& job);
    // REQUIRES: another one leads them.
    void follow(const Job& job, scheduler::JobKeys keys);
    // Who led before follows with these keys. REQUIRES: another one leads them.
    void take_lead(const Job& job, scheduler::JobKeys of_former);

    // Whom it follows; nullopt: it follows nobody.
    std::optional<JobId> followed_by(const JobId& follower) const;
    // Of a follower that has ended; nullopt: it follows nobody.
    std::optional<scheduler::JobKeys> drop_follower(const JobId& follower);
    // The leader ended with outputs for all of them.
    std::vector<Follower> end(const JobId& leader);
    // The leader ended without: the first by priority and age leads from now on.
    std::optional<Follower> pass_on(const JobId& leader);

    std::size_t followers() const { return follows_.size(); }

private:
    struct Run {
        JobId leader;
        std::map<JobId, scheduler::JobKeys> followers;  // ids are by age
    };
    std::unordered_map<std::string, Run> runs_;       // by tenant and reuse_key
    std::unordered_map<JobId, std::string> leads_;    // the key of runs_
    std::unordered_map<JobId, std::string> follows_;  // likewise
};

// True when `a` is to run before `b`, whenever it came.
bool is_more_urgent(const scheduler::JobKeys& a, const scheduler::JobKeys& b);

}  // namespace comfyd::jobs
