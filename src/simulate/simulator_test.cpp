#include "simulate/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "simulate/policy.hpp"
#include "simulate/report.hpp"
#include "simulate/synthetic.hpp"

namespace comfyd::simulate {
namespace {

Fleet fleet_of(const char* text) {
    return *parse_fleet(text, GpuTable());
}

// Eight workers that hold one checkpoint each, twenty checkpoints by Zipf's law, a load twenty
// times as long as a run.
struct LoadBound {
    Trace trace;
    Fleet fleet = fleet_of("8xL40S");

    explicit LoadBound(std::size_t jobs) {
        SyntheticOptions options;
        options.jobs = jobs;
        options.arrivals = Arrivals::at_once;
        options.models = 20;
        options.tenants = 1;
        options.sizes = 1;
        options.seconds = 1;
        options.noise = 0;
        options.high = options.low = 0;
        trace = *make_synthetic(options);
        for (GpuType& type : fleet) {
            type.load_bytes_per_second = 300e6;  // 6 GB in 20 s
            type.model_memory_bytes = 0;
        }
    }
};

class EveryPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, RunsEveryJobOnceAndIsNeverBetterThanTheBound) {
    SyntheticOptions options;
    options.jobs = 1'500;
    options.rate = 4;
    const Trace trace = *make_synthetic(options);
    const Fleet fleet = fleet_of("5xL40S,2xH200");
    const auto outcome = simulate(trace, fleet, GetParam(), Settings());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->completed, 1'500U);
    EXPECT_EQ(outcome->failed_jobs, 0U);
    EXPECT_GE(outcome->makespan, makespan_bound(trace, fleet));
    for (std::size_t at = 0; at < trace.jobs.size(); ++at) {
        ASSERT_GE(outcome->waits[at], 0);
        ASSERT_GE(outcome->turnarounds[at], outcome->waits[at]);
    }
    const double work = std::accumulate(
        trace.jobs.begin(),
        trace.jobs.end(),
        0.0,
        [&](double sum, const TraceJob& job) {
            return sum + trace.profiles[job.profile].seconds * static_cast<double>(job.factor);
        }
    );
    EXPECT_LE(outcome->run_seconds, work * 1.001);
    EXPECT_GE(outcome->run_seconds, work / 2 * 0.999) << "the fastest is twice as fast";
    EXPECT_LE(outcome->utilisation(), 1);
}

TEST_P(EveryPolicy, IsTheSameEveryTime) {
    SyntheticOptions options;
    options.jobs = 400;
    options.arrivals = Arrivals::bursty;
    options.rate = 5;
    const Trace trace = *make_synthetic(options);
    Settings settings;
    settings.failure_rate = 0.05;
    settings.outage_hours = 0.1;
    settings.repair_seconds = 30;
    const auto first = simulate(trace, fleet_of("3xL40S,1xT4"), GetParam(), settings);
    const auto second = simulate(trace, fleet_of("3xL40S,1xT4"), GetParam(), settings);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->waits, second->waits);
    EXPECT_EQ(first->turnarounds, second->turnarounds);
    EXPECT_EQ(first->loads, second->loads);
    EXPECT_EQ(first->failed_runs, second->failed_runs);
}

TEST_P(EveryPolicy, FailuresAndOutagesLoseNoJob) {
    SyntheticOptions options;
    options.jobs = 1'000;
    options.rate = 4;
    const Trace trace = *make_synthetic(options);
    Settings settings;
    settings.failure_rate = 0.1;
    settings.outage_hours = 0.05;
    settings.repair_seconds = 20;
    const auto outcome = simulate(trace, fleet_of("6xL40S"), GetParam(), settings);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->completed + outcome->failed_jobs, 1'000U);
    EXPECT_GT(outcome->failed_runs, 50U);
    EXPECT_LT(outcome->failed_jobs, 30U);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    EveryPolicy,
    testing::ValuesIn(policy_names()),
    [](const testing::TestParamInfo<std::string>& info) {
        std::string name = info.param;
        std::ranges::replace(name, '-', '_');
        return name;
    }
);

TEST(Simulator, OneJobAfterAnotherOnOneWorker) {
    SyntheticOptions options;
    options.jobs = 10;
    options.arrivals = Arrivals::at_once;
    options.models = options.tenants = options.sizes = 1;
    options.noise = 0;
    options.seconds = 3;
    options.model_gb = 4;
    const Trace trace = *make_synthetic(options);
    Settings settings;
    settings.load_jitter = 0;
    const auto outcome = simulate(trace, fleet_of("L40S"), "fifo", settings);
    ASSERT_TRUE(outcome);
    EXPECT_NEAR(outcome->makespan, 2 + 10 * 3, 1e-6);
    EXPECT_EQ(outcome->loads, 1U);
    EXPECT_NEAR(outcome->load_seconds, 2, 1e-6);
    EXPECT_NEAR(percentile(outcome->waits, 1), 2 + 9 * 3, 1e-4);
    EXPECT_NEAR(makespan_bound(trace, fleet_of("L40S")), 32, 1e-6);
    EXPECT_NEAR(outcome->usd, 32.0 / 3600, 1e-6);
    EXPECT_NEAR(outcome->images_per_gpu_second(), 10.0 / 32, 1e-6);
}

TEST(Simulator, MoreWorkersDoMore) {
    SyntheticOptions options;
    options.jobs = 2'000;
    options.rate = 5;
    const Trace trace = *make_synthetic(options);
    const auto few = simulate(trace, fleet_of("8xL40S"), "finish-time", Settings());
    const auto more = simulate(trace, fleet_of("11xL40S"), "finish-time", Settings());
    ASSERT_TRUE(few && more);
    EXPECT_LT(percentile(more->waits, 0.95), percentile(few->waits, 0.95));
}

TEST(Simulator, MergedRunsMakeMoreOfAGpuSecond) {
    SyntheticOptions options;
    options.jobs = 1'000;
    options.arrivals = Arrivals::at_once;
    options.models = 2;
    const Trace trace = *make_synthetic(options);
    Settings settings;
    settings.merge_max = 8;
    const auto alone = simulate(trace, fleet_of("4xL40S"), "finish-time", Settings());
    const auto merged = simulate(trace, fleet_of("4xL40S"), "finish-time", settings);
    ASSERT_TRUE(alone && merged);
    EXPECT_EQ(merged->completed, 1'000U);
    EXPECT_GT(merged->images_per_gpu_second(), 2 * alone->images_per_gpu_second());
}

TEST(Simulator, ModelsStayLoadedAsFarAsTheyFit) {
    SyntheticOptions options;
    options.jobs = 200;
    options.arrivals = Arrivals::at_once;
    options.models = 3;
    options.sizes = 1;
    const Trace trace = *make_synthetic(options);
    Fleet fleet = fleet_of("1xL40S");
    fleet[0].model_memory_bytes = 12'000'000'000;  // two beside the latest
    EXPECT_EQ(simulate(trace, fleet, "fifo", Settings())->loads, 3U);
    fleet[0].model_memory_bytes = 11'000'000'000;
    EXPECT_GT(simulate(trace, fleet, "fifo", Settings())->loads, 20U);
}

TEST(Simulator, RefusesAPolicyThatThereIsNotAndStopsWhenAsked) {
    const LoadBound scene(5'000);
    const auto unknown = simulate(scene.trace, scene.fleet, "clever", Settings());
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::invalid_argument);
    const auto stopped =
        simulate(scene.trace, scene.fleet, "fifo", Settings(), [](std::uint64_t) { return false; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, Code::cancelled);
}

// The promise of docs/performance.md.
TEST(Simulator, TheFinishTimePolicyIsNearTheBoundWhereLoadsDecide) {
    const LoadBound scene(2'000);
    const double bound = makespan_bound(scene.trace, scene.fleet);
    EXPECT_NEAR(bound, (2'000 + 20 * 20) / 8.0, 1e-6);
    const auto ours = simulate(scene.trace, scene.fleet, "finish-time", Settings());
    const auto fifo = simulate(scene.trace, scene.fleet, "fifo", Settings());
    ASSERT_TRUE(ours && fifo);
    EXPECT_LT(ours->makespan, 1.2 * bound);
    EXPECT_GT(fifo->makespan, 10 * bound);
    EXPECT_LT(ours->loads, 60U);
    EXPECT_GT(fifo->loads, 1'500U);
}

}  // namespace
}  // namespace comfyd::simulate
