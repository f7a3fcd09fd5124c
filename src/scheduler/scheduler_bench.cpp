// Decisions of the scheduler with a full queue: a million jobs of two hundred tenants wait, ten
// thousand workers run. Memory is what the process has grown by.
#include <benchmark/benchmark.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "scheduler/prewarmer.hpp"
#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;

double resident_mb() {
    std::ifstream status("/proc/self/statm");
    long pages = 0;
    long resident = 0;
    status >> pages >> resident;
    return static_cast<double>(resident) * 4096 / 1e6;
}

struct Full {
    Full(std::size_t jobs, std::size_t workers, std::size_t tenants, std::size_t checkpoints) {
        const double before = resident_mb();
        for (std::size_t i = 0; i < workers; ++i) {
            scheduler.set_worker(worker("w" + std::to_string(i), i % 3 == 0 ? "B" : "A"));
        }
        for (std::size_t i = 0; i < checkpoints; ++i) {
            profiles.push_back(profile("c" + std::to_string(i)));
            weights.push_back(1.0 / static_cast<double>(i + 1));
        }
        pick = std::discrete_distribution<std::size_t>(weights.begin(), weights.end());
        tenant_count = tenants;
        for (std::size_t i = 0; i < jobs; ++i) {
            add();
        }
        while (auto decision = scheduler.next(at(now_s))) {
            running.push_back(decision->job);
        }
        grown_mb = resident_mb() - before;
    }

    void add() {
        ++number;
        JobKeys made = keys(
            profiles[pick(random)],
            at(now_s),
            1 + static_cast<int>(random() % 10),
            "tenant" + std::to_string(random() % tenant_count)
        );
        made.batch = random() % 10 == 0;
        scheduler.add(job_id(number), std::move(made));
        last = job_id(number);
    }

    TableEstimates estimates;
    Scheduler scheduler{estimates};
    std::vector<ProfilePtr> profiles;
    std::vector<double> weights;
    std::discrete_distribution<std::size_t> pick;
    std::mt19937_64 random{1};
    std::size_t tenant_count = 1;
    std::uint64_t number = 0;
    double now_s = 0;
    double grown_mb = 0;
    std::vector<JobId> running;
    JobId last;
};

// One of the workers has ended a job, another job comes, and one is placed: what happens per job
// when the queue stays full. In virtual time as fast as that many workers would do it.
void BM_Decision(benchmark::State& state) {
    const auto jobs = static_cast<std::size_t>(state.range(0));
    const auto workers = static_cast<std::size_t>(state.range(1));
    Full full(jobs, workers, 200, 100);
    std::size_t at_worker = 0;
    std::size_t placed = 0;
    for (auto _ : state) {
        full.now_s += 1.0 / static_cast<double>(workers);
        full.scheduler.finished(full.running[at_worker], 1, at(full.now_s));
        full.add();
        auto decision = full.scheduler.next(at(full.now_s));
        if (decision) {
            full.running[at_worker] = decision->job;
            ++placed;
        }
        at_worker = (at_worker + 1) % full.running.size();
    }
    state.counters["memory_mb"] = full.grown_mb;
    state.counters["placed"] =
        static_cast<double>(placed) / static_cast<double>(state.iterations());
    state.counters["loads"] = static_cast<double>(full.scheduler.loads());
}
// With as many repetitions as it takes for what the set-up left behind not to count.
BENCHMARK(BM_Decision)
    ->Args({1'000'000, 10'000})
    ->Args({100'000, 1000})
    ->Args({1000, 10})
    ->Iterations(100'000);

void BM_Position(benchmark::State& state) {
    Full full(static_cast<std::size_t>(state.range(0)), 100, 200, 100);
    for (auto _ : state) {
        benchmark::DoNotOptimize(full.scheduler.position(full.last, at(full.now_s)));
    }
}
BENCHMARK(BM_Position)->Arg(1'000'000);

void BM_ExpectedWait(benchmark::State& state) {
    Full full(static_cast<std::size_t>(state.range(0)), 10'000, 200, 100);
    for (auto _ : state) {
        benchmark::DoNotOptimize(full.scheduler.expected_wait(full.last, at(full.now_s)));
    }
}
BENCHMARK(BM_ExpectedWait)->Arg(1'000'000);

// What a submission costs more because its priority is weighed.
void BM_Classify(benchmark::State& state) {
    Full full(static_cast<std::size_t>(state.range(0)), 10'000, 200, 100);
    std::size_t at_profile = 0;
    for (auto _ : state) {
        Circumstances known = full.scheduler.circumstances(full.profiles[at_profile]);
        known.tier = Tier::pro;
        benchmark::DoNotOptimize(priority_of(5, grounds_of(known)));
        at_profile = (at_profile + 1) % full.profiles.size();
    }
}
BENCHMARK(BM_Classify)->Arg(1'000'000)->Arg(1000);

// Time passes and nothing happens.
void BM_Tick(benchmark::State& state) {
    Full full(static_cast<std::size_t>(state.range(0)), 1000, 200, 100);
    for (auto _ : state) {
        full.now_s += 0.001;
        benchmark::DoNotOptimize(full.scheduler.next(at(full.now_s)));
    }
}
BENCHMARK(BM_Tick)->Arg(1'000'000);

// A look of the prewarmer at idle workers: each has models that hardly any job needs.
void BM_Prewarm(benchmark::State& state) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    Prewarmer prewarmer;
    for (std::int64_t i = 0; i < state.range(0); ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
        scheduler.warm("w" + std::to_string(i), profile("old" + std::to_string(i)));
    }
    for (int i = 0; i < 3'000; ++i) {
        prewarmer.arrived(profile("c" + std::to_string(i % 100), 5), at(i));
    }
    double now_s = 3'000;
    std::size_t orders = 0;
    for (auto _ : state) {
        for (const auto& order : prewarmer.look(scheduler, at(now_s))) {
            prewarmer.ended(order.worker, false, at(now_s));
            ++orders;
        }
        now_s += 5;
    }
    state.counters["orders"] = static_cast<double>(orders);
}
BENCHMARK(BM_Prewarm)->Arg(10)->Arg(1000);

// The empty queue of most installations: a job comes, a worker is free, it is placed, it ends.
void BM_PassThrough(benchmark::State& state) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    for (int i = 0; i < 8; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    const ProfilePtr plain = profile("");
    std::uint64_t number = 0;
    for (auto _ : state) {
        const JobId job = job_id(++number);
        scheduler.add(job, keys(plain, kStart));
        benchmark::DoNotOptimize(scheduler.next(kStart));
        scheduler.finished(job, 1, kStart);
    }
}
BENCHMARK(BM_PassThrough);

}  // namespace
}  // namespace comfyd::scheduler
