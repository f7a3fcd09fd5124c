// What is asked of the leader of a job's domain, which may be this node or another.
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
#include "jobs/load.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

// Why a job waits, as its dispatcher says.
struct Waiting {
    std::optional<scheduler::Explanation> explanation;  // while it waits for a worker
    std::optional<JobId> waits_for;  // while it waits for the outputs of this one
};

// How a job is cancelled: in whatever state, or only while no worker has it.
enum class Cancel { anyway, while_waiting };

struct LedJob {
    JobId id;
    std::string domain;
};

class Leader {
public:
    virtual ~Leader() = default;

    // Code::conflict when the job is not in a state for it. Code::lead_lost: nobody leads the
    // domain, or it is not known whether it was done.
    virtual Task<Result<>> cancel(LedJob job, Cancel how) = 0;
    // nullopt, here and below: the leader did not say.
    virtual Task<std::optional<Forecast::Live>> live(LedJob job) = 0;
    virtual Task<std::optional<Waiting>> explain(LedJob job) = 0;
    // As of Service::read_output(). Code::lead_lost.
    virtual Task<Result<std::string>> read_output(
        LedJob job, WorkerFile file, std::uint64_t bytes_max
    ) = 0;
    virtual Task<std::optional<Load>> load(std::string domain) = 0;
    // Of all domains that it leads.
    virtual Task<std::vector<WorkerInfo>> workers() = 0;
    virtual Task<> free_idle_workers(bool models, bool results) = 0;
};

// The leaders of all domains that this node does not lead. Implemented by the cluster room.
class Elsewhere : public Leader {
public:
    // The ledger has something new for whoever leads the domain. Any thread.
    virtual void tell_of_arrival(const std::string& domain) = 0;
    // Jobs that wait there, as far as it is known. Any thread.
    virtual std::size_t queued() const = 0;
};

}  // namespace comfyd::jobs
