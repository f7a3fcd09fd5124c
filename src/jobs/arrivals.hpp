// Jobs that are accepted and on their way from the threads that accepted them to the core's queue.
// Many cross in one post: waking the core for each would cost more than the work itself.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "jobs/backlog.hpp"
#include "jobs/job.hpp"
#include "jobs/leader.hpp"
#include "jobs/leads.hpp"

namespace comfyd::jobs {

class Arrivals {
public:
    struct Job {
        int rank = 0;  // its priority, or 0 of the batch class
        jobs::Job job;
        scheduler::ProfilePtr profile;
        json::object secret_extra_data;
        std::uint64_t content = 0;  // scheduler::JobKeys::content
    };

    // All outlive it. The backlog counts those that are on their way. `elsewhere`: whom to tell of
    // those whose domain another node leads; nullptr: there is none.
    Arrivals(Executor core, Leads& leads, Backlog& backlog, Elsewhere* elsewhere)
        : core_(core), leads_(leads), backlog_(backlog), elsewhere_(elsewhere) {}

    // From an executor that the caller runs on. Any thread.
    void send(Job job, Executor here);
    // Into the queues with all of them; on the core. One whose domain is led by another node is
    // left to it, which finds it in the ledger.
    void take_over();

private:
    Executor core_;
    Leads& leads_;
    Backlog& backlog_;
    Elsewhere* elsewhere_;
    Mutex mutex_;
    std::vector<Job> jobs_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::jobs
