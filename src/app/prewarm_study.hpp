// Decides whether idle workers load models ahead of jobs: now and then the jobs of the past week
// are read from the ledger and run through the simulator with and without, on the workers that
// there are. Also where that is decided by the configuration, what kinds of jobs there were is
// read.
//
// Owned by the application; core executor. Reading and simulating happen on a thread of its own,
// which lets all others go first. Only of a ledger that is a file of this process: what is in a
// database that nodes share is not replayed.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "app/commands/record_trace.hpp"
#include "app/config/config.hpp"
#include "app/office.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "jobs/service.hpp"
#include "observe/metrics.hpp"
#include "simulate/prewarm_gain.hpp"

namespace comfyd::app {

class PrewarmStudy {
public:
    // All outlive it.
    struct Parts {
        Executor core;
        Clock& clock;
        jobs::Service& jobs;
        const Config& config;
        std::function<std::vector<std::shared_ptr<Office>>()> offices;
    };
    PrewarmStudy(const Parts& parts, std::filesystem::path data);

    void start();
    Task<> stop();
    // Any thread.
    void collect(observe::Metrics::Gauges& gauges) const;

private:
    Task<> keep_studying();
    Task<> study();
    simulate::Fleet fleet_for(const simulate::Trace& trace) const;
    void set(bool is_on);

    Parts p_;
    const std::filesystem::path data_;
    std::atomic<bool> is_on_{false};
    std::atomic<bool> is_over_{false};
    std::optional<bool> told_;  // what the log was told last
    Pool thread_{1};
    TaskGroup tasks_;
};

}  // namespace comfyd::app
