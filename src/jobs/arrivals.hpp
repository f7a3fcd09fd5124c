// Jobs that are accepted and on their way from the threads that accepted them to the core's queue.
// Many cross in one post: waking the core for each would cost more than the work itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "jobs/dispatcher.hpp"
#include "jobs/job.hpp"

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

    // `dispatcher` outlives it.
    Arrivals(Executor core, Dispatcher& dispatcher);

    // From an executor that the caller runs on. Any thread.
    void send(Job job, Executor here);
    // Those of this rank or a higher one. Any thread.
    std::size_t count(int rank) const;
    // Into the queue with all of them; on the core.
    void take_over();

private:
    Executor core_;
    Dispatcher& dispatcher_;
    std::array<std::atomic<std::size_t>, kPriorityMax + 1> by_rank_{};
    Mutex mutex_;
    std::vector<Job> jobs_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::jobs
