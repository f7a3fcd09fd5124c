#include <benchmark/benchmark.h>

#include "autoscale/decide.hpp"

namespace comfyd::autoscale {
namespace {

// A pool with so many machines, and 100,000 waiting jobs of 200 models in all classes.
void BM_Decide(benchmark::State& state) {
    constexpr int kModels = 200;
    constexpr std::size_t kJobs = 125;
    PoolView pool;
    pool.settings.max = 2'000;
    pool.offers = {{"a", 0.4, true}, {"b", 0.7, false}};
    for (int i = 0; i < state.range(0); ++i) {
        pool.machines.push_back({i % 10 != 0, 30, i % 3, i % 2, 4.0, 0.5});
    }
    for (int model = 0; model < kModels; ++model) {
        for (std::size_t at = 0; at < scheduler::kWaitClasses; ++at) {
            pool.waiting.push_back(
                {static_cast<scheduler::WaitClass>(at), std::to_string(model), 8, kJobs, 500}
            );
        }
    }
    Memory memory;
    Time now{Millis(1'700'000'000'000)};
    for (int hour = 0; hour < 24 * 10; ++hour) {
        memory.history.add(now, 3'600);
        now += std::chrono::hours(1);
    }
    for (auto _ : state) {
        now += std::chrono::seconds(1);
        pool.arrived_s += 40;
        benchmark::DoNotOptimize(decide(pool, memory, now));
    }
}
BENCHMARK(BM_Decide)->Arg(10)->Arg(1'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace comfyd::autoscale
