// How long jobs will wait and run, for those who ask and for those who are told of an attempt. Core
// executor.
#pragma once

#include <optional>

#include "base/time.hpp"
#include "jobs/job.hpp"
#include "jobs/job_table.hpp"
#include "jobs/placement.hpp"

namespace comfyd::jobs {

// Rounded up: nobody is told that something takes no time.
int whole_seconds(double seconds);

class Forecast {
public:
    // All outlive it.
    Forecast(Clock& clock, const JobTable& table, const Placement& placement)
        : clock_(clock), table_(table), placement_(placement) {}

    // A job has completed by its own run.
    void note_run(const Job& job);

    struct Live {
        std::optional<Progress> progress;
        std::optional<int> queue_position;
        std::optional<int> estimated_wait_s;
        std::optional<int> estimated_remaining_s;
        std::optional<double> estimate_confidence;  // 0..1, of what is left of a run
    };
    Live live(const JobId& id) const;
    // With what has to be loaded; nullopt: nothing is known of such runs.
    std::optional<scheduler::Expectation> expect_run(const Attempt& attempt) const;
    // As such runs took on its worker, with nothing to load; nullopt: none was seen.
    std::optional<Millis> known_run(const Attempt& attempt) const;
    std::optional<int> seconds_left(const Attempt& attempt) const;

private:
    std::optional<scheduler::Expectation> estimate_rest(const Attempt& attempt) const;
    // Of a job that waits, on the kind of GPU that the workers have; 0: not known.
    double expected_run_s(const scheduler::ProfilePtr& profile) const;

    Clock& clock_;
    const JobTable& table_;
    const Placement& placement_;
    double mean_execution_ms_ = 0;  // of completed jobs, recent ones weigh more
};

}  // namespace comfyd::jobs
