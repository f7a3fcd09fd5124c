#include "autoscale/need.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace comfyd::autoscale {
namespace {

using scheduler::WaitClass;

constexpr Millis kBurstWindow = std::chrono::seconds(6);
constexpr Millis kCalmWindow = std::chrono::seconds(60);
constexpr double kBurstTimes = 2;
// A burst is taken to go on for so long: most end before the machines are there that it wants.
constexpr double kBurstGoesOn = 30;
constexpr double kBusyMost = 0.9;  // of the time, of machines that keep up
// The time that a start takes is made up for by being quicker afterwards, but not at any price.
constexpr double kTargetLeast = 0.5;
constexpr double kMost = 1e6;

double target_of(WaitClass wait_class) {
    return std::chrono::duration<double>(scheduler::wait_target(wait_class)).count();
}

double slots_of(const PoolView& pool) {
    return std::max(pool.settings.slots, 1);
}

double capacity(const Numbers& numbers, const PoolView& pool) {
    return numbers.ready * slots_of(pool) + pool.others;
}

int whole(double machines) {
    return static_cast<int>(std::ceil(std::clamp(machines, 0.0, kMost) - 1e-9));
}

void remember_busy(const Numbers& numbers, Memory& memory, Time now) {
    const Millis since = memory.decided_at ? now - *memory.decided_at : kCalmWindow;
    const double part = 1 - std::exp(-std::chrono::duration<double>(since) / kCalmWindow);
    memory.busy += std::clamp(part, 0.0, 1.0) * (numbers.busy - memory.busy);
    memory.decided_at = now;
}

void remember_arrivals(const PoolView& pool, Memory& memory, Time now) {
    const bool goes_on = memory.arrived_s && pool.arrived_s >= *memory.arrived_s;
    memory.history.add(now, goes_on ? pool.arrived_s - *memory.arrived_s : 0);
    memory.arrived_s = pool.arrived_s;
    memory.arrivals.note(now, pool.arrived_s);
}

// Work that would still wait when a machine that is ordered now is ready.
double behind(const Numbers& numbers, const PoolView& pool, double work_s, bool is_burst) {
    const double until = numbers.start_s;
    double done = until * capacity(numbers, pool);
    for (const Machine& machine : pool.machines) {
        if (!machine.is_ready) {
            done += slots_of(pool) * std::max(0.0, until - machine.ready_in_s);
        }
    }
    double come = numbers.rate * until;
    if (is_burst) {
        const double goes_on = std::min(until, kBurstGoesOn);
        come += (std::max(numbers.rate_now, numbers.rate) - numbers.rate) * goes_on;
    }
    return std::max(0.0, work_s + numbers.running_s + come - done);
}

}  // namespace

Numbers look(const PoolView& pool, Memory& memory, Time now) {
    Numbers numbers;
    for (const Machine& machine : pool.machines) {
        (machine.is_ready ? numbers.ready : numbers.coming) += 1;
        numbers.busy += machine.jobs > 0 ? 1 : 0;
        numbers.working += machine.jobs + machine.best_effort > 0 ? 1 : 0;
        numbers.running += static_cast<std::size_t>(std::max(machine.jobs, 0));
        numbers.running_s += machine.left_s;
    }
    for (const Work& work : pool.waiting) {
        if (work.wait_class == WaitClass::batch) {
            numbers.best_effort += work.jobs;
        } else if (work.is_for_others) {
            numbers.others += work.jobs;
            numbers.others_s += work.seconds;
        } else if (work.is_runnable) {
            numbers.waiting += work.jobs;
            numbers.waiting_s += work.seconds;
        }
    }
    remember_arrivals(pool, memory, now);
    remember_busy(numbers, memory, now);
    numbers.rate = memory.arrivals.lasting_rate(now, kCalmWindow, 10);
    numbers.rate_now = memory.arrivals.lasting_rate(now, kBurstWindow, 6);
    numbers.peak = memory.arrivals.rate(now, kBurstWindow);
    return numbers;
}

void expect_start(Numbers& numbers, const PoolView& pool, const Memory& memory, std::size_t offer) {
    double load_s = 0;
    for (const Work& work : pool.waiting) {
        const bool counts = work.wait_class != WaitClass::batch && work.is_runnable;
        load_s +=
            counts && numbers.waiting_s > 0 ? work.load_s * work.seconds / numbers.waiting_s : 0;
    }
    const std::string place = offer < pool.offers.size() ? pool.offers[offer].place : std::string();
    numbers.start_s = memory.starts.seconds(place, 0.5) + load_s;
    numbers.start_p90_s = memory.starts.seconds(place, 0.9) + load_s;
}

bool is_burst(const Numbers& numbers, const PoolView& pool) {
    const double can = capacity(numbers, pool);
    return can > 0 && numbers.peak > kBurstTimes * can && numbers.peak > numbers.rate;
}

int need_of_work(Numbers& numbers, const PoolView& pool, bool is_burst) {
    std::array<double, scheduler::kWaitClasses> waiting{};
    for (const Work& work : pool.waiting) {
        if (work.is_runnable && !work.is_for_others) {
            waiting[static_cast<std::size_t>(work.wait_class)] += work.seconds;
        }
    }
    const double coming = numbers.rate / kBusyMost;
    double ahead = 0;
    double lasting = 0;   // what would do, were it there
    double starting = 0;  // what must be there once new ones are ready
    for (const WaitClass wait_class : {WaitClass::high, WaitClass::medium, WaitClass::low}) {
        const double own = waiting[static_cast<std::size_t>(wait_class)];
        ahead += own;
        if (own == 0) {
            continue;
        }
        const double target = target_of(wait_class);
        lasting = std::max(lasting, ahead / target);
        const double left = behind(numbers, pool, ahead, is_burst);
        const double within = std::max(target - numbers.start_s, target * kTargetLeast);
        if (numbers.wait_class.empty() || left / within > starting) {
            starting = left / within;
            numbers.behind_s = left;
            numbers.wait_class = scheduler::to_string(wait_class);
            numbers.target_s = target;
        }
    }
    // No more than there are jobs for.
    const double jobs = static_cast<double>(numbers.waiting + numbers.running);
    const auto machines = [&](double busy) {
        const double of_use = std::min(busy + coming, std::max(jobs, coming));
        return whole((of_use - pool.others) / slots_of(pool));
    };
    int low = machines(lasting);
    if (numbers.waiting > 0 && capacity(numbers, pool) <= 0) {
        low = std::max(low, 1);
    }
    if (starting > 0 || numbers.total() == 0) {
        return std::max(low, machines(starting));
    }
    return std::min(low, numbers.total());
}

int need_of_others(const Numbers& numbers) {
    constexpr double kTogether = 120;  // seconds of work for each
    constexpr std::size_t kMachinesMax = 1'000;
    const auto jobs = static_cast<int>(std::min(numbers.others, kMachinesMax));
    return std::min(jobs, std::max(1, whole(numbers.others_s / kTogether)));
}

json::object Numbers::to_json() const {
    const auto rounded = [](double value) { return std::round(value * 100) / 100; };
    return {
        {"waiting", waiting},
        {"waiting_gpu_seconds", rounded(waiting_s)},
        {"waiting_for_other_machines", others},
        {"waiting_best_effort", best_effort},
        {"running", running},
        {"running_gpu_seconds", rounded(running_s)},
        {"rate_60s", rounded(rate)},
        {"rate_6s", rounded(rate_now)},
        {"peak_6s", rounded(peak)},
        {"start_seconds_p50", rounded(start_s)},
        {"start_seconds_p90", rounded(start_p90_s)},
        {"behind_gpu_seconds", rounded(behind_s)},
        {"class", wait_class},
        {"target_seconds", target_s},
        {"ready", ready},
        {"coming", coming},
        {"busy", working},
        {"need", need},
        {"need_recently", recent},
        {"minimum", minimum},
        {"budget_left_usd",
         budget_left_usd ? json::value(rounded(*budget_left_usd)) : json::value(nullptr)},
    };
}

}  // namespace comfyd::autoscale
