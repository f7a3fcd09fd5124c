// Runs a trace on a fleet under a policy, in virtual time: an event queue and a model of what
// workers do (runs, loads, what stays in memory, failures). The same inputs give the same outcome.
// The scheduler knows of the times only what a predictor has learned from the runs before, as in a
// real server.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "simulate/gpu_types.hpp"
#include "simulate/trace.hpp"

namespace comfyd::simulate {

struct Settings {
    std::uint64_t seed = 1;   // of the failures
    double failure_rate = 0;  // part of the runs that fail on the way; each is tried three times
    double outage_hours = 0;  // of work between two outages of a worker, on average; 0: none
    double repair_seconds = 300;
    double load_jitter = 0.05;  // a load takes up to so much longer than the size says
    int merge_max = 1;
    // A merged run of n jobs takes 1 + this x (n - 1) times as long as one of them.
    double merge_cost = 0.3;
    bool prewarms = false;  // idle workers load models ahead of jobs (scheduler/prewarmer.hpp),
    std::set<std::string> pinned{};  // these before all others
    // Of how many of its latest prompts a worker keeps the results; ComfyUI's usual cache: of one.
    std::size_t results_kept = 1;
};

// Of the whole fleet at one time.
struct Moment {
    double at = 0;  // seconds
    double waiting = 0;
    double running = 0;  // workers, loading included
};

struct Outcome {
    std::string policy;
    std::string fleet;
    std::size_t workers = 0;
    double makespan = 0;             // seconds from the first arrival to the last end
    std::vector<float> waits;        // of each job, until it first ran; below 0: never ran
    std::vector<float> turnarounds;  // until it ended
    double run_seconds = 0;          // of all workers, without loads
    double load_seconds = 0;
    std::uint64_t runs = 0;
    std::uint64_t loads = 0;     // runs or preparations that had to load something
    std::uint64_t prewarms = 0;  // of them, ahead of jobs
    std::uint64_t repeated = 0;  // runs that were answered from results the worker had
    std::uint64_t failed_runs = 0;
    std::uint64_t failed_jobs = 0;
    std::uint64_t completed = 0;
    double images = 0;
    double usd = 0;        // the whole fleet for the whole time
    double run_error = 0;  // median relative error of the run times as predicted
    std::vector<Moment> timeline;

    double utilisation() const;      // part of the workers' time spent on runs
    double mean_turnaround() const;  // seconds, of jobs that ended
    double gpu_seconds() const { return run_seconds + load_seconds; }
    double images_per_gpu_second() const;
};

// Told from time to time: jobs ended so far. Returning false ends the simulation early.
using Progress = std::function<bool(std::uint64_t ended)>;

// Code::invalid_argument for a policy that there is not; Code::cancelled when `progress` said so.
Result<Outcome> simulate(
    const Trace& trace,
    const Fleet& fleet,
    const std::string& policy,
    const Settings& settings,
    const Progress& progress = {}
);

// No schedule whatsoever can be shorter: every job's work must be done by somebody after it came,
// less what a worker's cache can save at most, and every model be loaded at least once.
double makespan_bound(const Trace& trace, const Fleet& fleet);

}  // namespace comfyd::simulate
