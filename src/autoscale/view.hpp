// What the autoscaler sees of a pool: what waits, what the machines do, where more may be had and
// what may still be paid. Plain values; waiting jobs are summed up, so that no decision walks them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autoscale/settings.hpp"
#include "autoscale/spending.hpp"
#include "scheduler/scheduler.hpp"

namespace comfyd::autoscale {

// Waiting jobs of one class and model.
struct Work {
    scheduler::WaitClass wait_class = scheduler::WaitClass::medium;
    std::string model{};
    double load_s = 0;  // of the model
    std::size_t jobs = 0;
    double seconds = 0;  // of GPU time, expected
    // Machines of this pool can run it, or nobody knows yet what they can.
    bool is_runnable = true;
    // It asks for a GPU, memory or a region that no machine here has, and the pool may have.
    bool is_for_others = false;
};

struct Machine {
    bool is_ready = false;
    double ready_in_s = 0;  // expected, of one that is not
    int jobs = 0;           // that it runs, without best effort
    int best_effort = 0;    // and those
    double left_s = 0;      // of GPU time, of all that it runs
    double usd_per_hour = 0;
};

// Where a machine may be had.
struct Offer {
    std::string place{};  // as Starts knows it
    std::optional<double> usd_per_hour{};
    bool is_spot = false;
    double speed = 1;  // of runs, as far as it is known
};

struct PoolView {
    std::string name;
    Settings settings{};
    std::vector<Work> waiting{};
    double arrived_s = 0;  // GPU-seconds of all that ever came but for best effort; only grows
    std::vector<Machine> machines{};   // that are wanted: coming and ready ones
    int others = 0;                    // prompts at once of workers that somebody else runs
    std::vector<Offer> offers{};       // in the operator's order
    std::optional<Tightest> budget{};  // of the pool, or of the fleet where that is tighter
    // So many dollars an hour all its machines may cost together; 0: no limit.
    double usd_per_hour_max = 0;
    std::string budget_of{};  // in words, whose it is: "the pool", "the fleet"
};

}  // namespace comfyd::autoscale
