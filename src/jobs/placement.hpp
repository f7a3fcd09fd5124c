// What the scheduler is told of workers and of the jobs on them, and what is learned from their
// runs. Core executor.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "jobs/fleet.hpp"
#include "jobs/job_table.hpp"
#include "jobs/lone_shapes.hpp"
#include "scheduler/predictor.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::jobs {

class Placement {
public:
    // All outlive it.
    Placement(
        Clock& clock,
        const JobTable& table,
        scheduler::Predictor& predictor,
        scheduler::Options options
    )
        : clock_(clock), table_(table), predictor_(predictor), scheduler_(predictor, options) {}

    const scheduler::Predictor& predictor() const { return predictor_; }
    scheduler::Scheduler& scheduler() { return scheduler_; }
    const scheduler::Scheduler& scheduler() const { return scheduler_; }

    // Something about it may have changed, or it is new.
    void update(const std::shared_ptr<Worker>& worker);
    // It has left the fleet. Attempts that are on their way to it keep it.
    void remove(const std::string& worker);
    std::size_t worker_count() const { return workers_.size(); }
    // Of this worker, or of any one; nullptr: it was never seen, or none was.
    const std::string* gpu_type(const std::string& worker) const;
    const std::string* usual_gpu_type() const;

    // Without a worker when the one that was chosen does not take it after all.
    std::shared_ptr<Worker> confirm(const scheduler::Decision& decision);
    // The worker can run the jobs of the decision as one prompt, and this has not failed lately.
    bool may_share(const scheduler::Decision& decision, const Worker& worker) const;
    // The scheduler counts it as running.
    void take_place(Attempt& attempt);
    // The worker is done with it.
    void give_up_place(Attempt& attempt);
    void learn(const Attempt& attempt, const Result<AttemptResult>& outcome);

private:
    struct Known {
        std::shared_ptr<Worker> worker;
        std::string told;             // what the scheduler was told of it last
        std::vector<JobId> attempts;  // that hold a place there, the oldest first
        std::string gpu_type;
    };

    void learn_memory(const Attempt& attempt, const Error& error, const std::string& gpu_type);
    void give_up_finished(const Known& known);
    double gpu_part(const Attempt& attempt) const;
    bool is_load(const Attempt& attempt, Millis measured) const;

    Clock& clock_;
    const JobTable& table_;
    scheduler::Predictor& predictor_;
    scheduler::Scheduler scheduler_;
    std::unordered_map<std::string, Known> workers_;  // by id
    LoneShapes lone_shapes_;
};

}  // namespace comfyd::jobs
