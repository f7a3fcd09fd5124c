// What is asked of the dispatcher of a job when another node leads the job's domain. Implemented by
// the cluster room.
//
// Members may be called on any executor; a Task continues on the executor that awaited it. Answers
// that only the leader's memory has are left out when it does not answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/task.hpp"
#include "jobs/fleet.hpp"
#include "jobs/forecast.hpp"
#include "jobs/job.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// Why a job waits, as its dispatcher says.
struct Waiting {
    std::optional<scheduler::Explanation> explanation;  // while it waits for a worker
    std::optional<JobId> waits_for;  // while it waits for the outputs of this one
};

class Elsewhere {
public:
    virtual ~Elsewhere() = default;

    // The ledger has something new for whoever leads the domain.
    virtual void tell_of_arrival(const std::string& domain) = 0;
    // Jobs that wait there, as far as it is known.
    virtual std::size_t queued() const = 0;

    // Code::conflict when the job is not in a state for it. Code::lead_lost when nobody has done it
    // in time: it is written down, and done by whoever leads next.
    virtual Task<Result<>> cancel(Job job) = 0;
    // The same for a job that no worker has: Code::conflict as soon as one does.
    virtual Task<Result<>> cancel_waiting(Job job) = 0;

    virtual Task<Forecast::Live> live(Job job) = 0;
    virtual Task<Waiting> explain(Job job) = 0;
    // As of Service::read_output().
    virtual Task<Result<std::string>> read_output(
        Job job, WorkerFile file, std::uint64_t bytes_max
    ) = 0;
    virtual Task<std::vector<WorkerInfo>> workers() = 0;
    virtual Task<> free_idle_workers(bool models, bool results) = 0;
};

}  // namespace comfyd::jobs
