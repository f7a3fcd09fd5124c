// Runs attempts: gives a job to the worker that was chosen for it, follows it there and gives its
// place to the next one. Core executor.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/task.hpp"
#include "events/hub.hpp"
#include "jobs/answers.hpp"
#include "jobs/attempt_end.hpp"
#include "jobs/attempt_start.hpp"
#include "jobs/placement.hpp"
#include "jobs/whereabouts.hpp"

namespace comfyd::jobs {

class Attempts {
public:
    // What attempts are made of.
    struct Parts {
        Executor core;
        Clock& clock;
        events::Hub& hub;
        TaskGroup& tasks;
        JobTable& table;
        Placement& placement;
        Alarms& alarms;
        const Ranking& ranking;
        Whereabouts& whereabouts;
        Answers& answers;
        AttemptStart& start;
        AttemptEnd& end;
        std::function<void()> look_at_queue;
    };
    // All outlive it.
    explicit Attempts(Parts parts) : p_(std::move(parts)) {}

    // By what the scheduler decided: the worker's place is taken.
    std::shared_ptr<Attempt> make(
        const scheduler::Decision& decision, std::shared_ptr<Worker> worker
    );
    // One that was just made. Its start is not stored yet.
    void launch(std::shared_ptr<Attempt> attempt);
    // Its start was stored by the transaction that accepted the job.
    void follow(std::shared_ptr<Attempt> attempt);
    // The job ran on this worker when the process ended; nullptr: it has left the fleet. Set: it
    // shares its run.
    std::shared_ptr<Attempt> reattach(
        Job job,
        scheduler::ProfilePtr profile,
        std::shared_ptr<Worker> worker,
        std::shared_ptr<Batch> group = nullptr
    );

private:
    Task<> run(std::shared_ptr<Attempt> attempt, bool is_reattached);
    Task<Result<Assignment>> begin(std::shared_ptr<Attempt> attempt, bool is_reattached);
    // It never began.
    void give_back(const std::shared_ptr<Attempt>& attempt, const Error& why);
    // The job is none of this process any more.
    void lose(const JobId& id);

    Parts p_;
};

}  // namespace comfyd::jobs
