// How many machines the work of a pool needs at one moment, whatever there may be. Pure.
#pragma once

#include <optional>
#include <string>

#include "autoscale/memory.hpp"
#include "autoscale/view.hpp"
#include "base/json.hpp"

namespace comfyd::autoscale {

// What was weighed.
struct Numbers {
    std::size_t waiting = 0;  // jobs that machines of the pool can do, without best effort
    double waiting_s = 0;
    std::size_t others = 0;  // jobs that want another machine than those that are there
    double others_s = 0;
    std::size_t best_effort = 0;
    std::size_t running = 0;  // without best effort
    double running_s = 0;     // of all
    // GPU-seconds that came a second, in the last minute and in the last six seconds; of both
    // without the tenth and the second in which the most came.
    double rate = 0;
    double rate_now = 0;
    double peak = 0;     // in the last six seconds, all of it
    double start_s = 0;  // until a machine that is ordered now works: half of them are as quick
    double start_p90_s = 0;
    double behind_s = 0;       // work that would still wait then
    std::string wait_class{};  // the one whose target wants the most machines
    double target_s = 0;
    int ready = 0;
    int coming = 0;
    int busy = 0;     // with work that is not best effort
    int working = 0;  // with any
    int need = 0;     // of this moment
    int recent = 0;   // the most of the last idle_timeout
    int minimum = 0;
    std::optional<double> budget_left_usd{};
    bool is_spent = false;  // not enough of it for one more start

    int total() const { return ready + coming; }
    json::object to_json() const;
};

// Looks, and remembers what it saw. `offer`: where the next machine would be had, or none.
Numbers look(const PoolView& pool, Memory& memory, Time now);
void expect_start(Numbers& numbers, const PoolView& pool, const Memory& memory, std::size_t offer);

// The need of what waits and comes: what would do, were it there, and more where that is not there
// and new ones would still find work once they are ready. Fills in what it weighed.
int need_of_work(Numbers& numbers, const PoolView& pool, bool is_burst);

// Of jobs that want another machine than those that are there.
int need_of_others(const Numbers& numbers);

// Work comes more than twice as fast as the ready machines do it, and faster than just before.
bool is_burst(const Numbers& numbers, const PoolView& pool);

}  // namespace comfyd::autoscale
