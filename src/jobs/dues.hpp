// What is due: a job's deadline, the end of its pause after a failure. Core executor.
#pragma once

#include <functional>
#include <utility>

#include "base/task.hpp"
#include "jobs/alarms.hpp"
#include "jobs/changes.hpp"
#include "jobs/job_table.hpp"
#include "jobs/whereabouts.hpp"

namespace comfyd::jobs {

class Dues {
public:
    // All outlive it.
    Dues(
        Clock& clock,
        const JobTable& table,
        Changes& changes,
        Whereabouts& whereabouts,
        Alarms& alarms,
        TaskGroup& tasks,
        const bool& is_stopping
    )
        : clock_(clock),
          table_(table),
          changes_(changes),
          whereabouts_(whereabouts),
          alarms_(alarms),
          tasks_(tasks),
          is_stopping_(is_stopping) {}

    // Called when a job is in the queue that was not.
    void on_queued(std::function<void()> callback) { queued_ = std::move(callback); }

    // An alarm of this job rings, if there still is such a job.
    void ring(const JobId& id, Time now);

private:
    Task<> requeue_now(JobId id);
    Task<> expire_now(JobId id, Time due);

    Clock& clock_;
    const JobTable& table_;
    Changes& changes_;
    Whereabouts& whereabouts_;
    Alarms& alarms_;
    TaskGroup& tasks_;
    const bool& is_stopping_;
    std::function<void()> queued_;
};

}  // namespace comfyd::jobs
