// Begins what the scheduler has decided: a job alone, or with others of its kind as one batch; and
// finds those that ran as one again after a restart. Core executor.
#pragma once

#include <vector>

#include "base/time.hpp"
#include "jobs/attempts.hpp"
#include "jobs/fleet.hpp"
#include "jobs/placement.hpp"
#include "jobs/ranking.hpp"

namespace comfyd::jobs {

class Batches {
public:
    // All outlive it.
    Batches(
        Clock& clock, Fleet& fleet, Placement& placement, const Ranking& ranking, Attempts& attempts
    )
        : clock_(clock),
          fleet_(fleet),
          placement_(placement),
          ranking_(ranking),
          attempts_(attempts) {}

    void launch(const scheduler::Decision& decision);

    // A job that ran as one with others when the process ended. REQUIRES: job.shared.
    struct FoundAgain {
        Job job;
        scheduler::ProfilePtr profile;
    };
    void reattach(std::vector<FoundAgain> found);

private:
    void launch_alone(const scheduler::Decision& decision, std::shared_ptr<Worker> worker);
    void put_batched_back(const scheduler::Decision& decision);
    void reattach_together(std::vector<FoundAgain> together);
    void count_running(const std::vector<FoundAgain>& together);

    Clock& clock_;
    Fleet& fleet_;
    Placement& placement_;
    const Ranking& ranking_;
    Attempts& attempts_;
};

}  // namespace comfyd::jobs
