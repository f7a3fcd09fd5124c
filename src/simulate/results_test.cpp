// Prompts that come again, or nearly so, and workers that still have what they made.
#include <gtest/gtest.h>

#include <numeric>

#include "simulate/report.hpp"
#include "simulate/simulator.hpp"
#include "simulate/synthetic.hpp"

namespace comfyd::simulate {
namespace {

constexpr std::uint64_t kSeeds = 20;
constexpr double kRounding = 0.01;  // runs end at whole milliseconds

Fleet fleet_of(const char* text) {
    return *parse_fleet(text, GpuTable());
}

double mean(const std::vector<float>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Jobs of one kind for as many workers as are busy for a good part of the time.
SyntheticOptions repeating(std::uint64_t seed, double repeats) {
    SyntheticOptions options;
    options.seed = seed;
    options.jobs = 1'000;
    options.rate = 1;
    options.models = 2;
    options.sizes = 1;
    options.tenants = 2;
    options.seconds = 4;
    options.repeats = repeats;
    return options;
}

TEST(Results, AnEqualPromptTakesNextToNothingWhereItRanLast) {
    SyntheticOptions options = repeating(1, 0);
    options.jobs = 2;
    options.models = 1;
    options.arrivals = Arrivals::at_once;
    Trace trace = *make_synthetic(options);
    trace.jobs[0].content = trace.jobs[1].content = 7;
    trace.jobs[0].factor = trace.jobs[1].factor = 1;
    const auto outcome = simulate(trace, fleet_of("L40S"), "fifo", Settings());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->repeated, 1U);
    EXPECT_NEAR(outcome->run_seconds, 4 * 1.01, 0.01);
    EXPECT_GE(outcome->makespan, makespan_bound(trace, fleet_of("L40S")));
    Settings nothing_kept;
    nothing_kept.results_kept = 0;
    EXPECT_EQ(simulate(trace, fleet_of("L40S"), "fifo", nothing_kept)->repeated, 0U);
    trace.jobs[1].content = 8;
    trace.profiles[0].kept_part = 0.25;
    EXPECT_NEAR(simulate(trace, fleet_of("L40S"), "fifo", Settings())->run_seconds, 4 + 3, 0.01)
        << "the same but for its seed";
}

// Whatever comes again and however often: less work is done than by whoever does not know what
// comes again, and jobs do not end later for it.
TEST(Results, KnowingWhatComesAgainSavesMoreThanItCosts) {
    for (const double repeats : {0.2, 0.5, 0.8}) {
        double ours_s = 0;
        double others_s = 0;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            const Trace trace = *make_synthetic(repeating(seed, repeats));
            Settings settings;
            settings.results_kept = 1 + seed % 4;
            const Fleet fleet = fleet_of(seed % 2 == 0 ? "6xL40S" : "5xL40S");
            const auto ours = simulate(trace, fleet, "finish-time", settings);
            const auto others = simulate(trace, fleet, "no-results", settings);
            ASSERT_TRUE(ours && others);
            EXPECT_EQ(ours->completed, 1'000U);
            EXPECT_GE(ours->makespan + kRounding, makespan_bound(trace, fleet));
            EXPECT_GT(ours->repeated, others->repeated) << repeats << " seed " << seed;
            EXPECT_LT(ours->run_seconds, others->run_seconds) << repeats << " seed " << seed;
            ours_s += mean(ours->turnarounds);
            others_s += mean(others->turnarounds);
        }
        EXPECT_LT(ours_s, others_s) << repeats;
    }
}

TEST(Results, WhereNothingComesAgainNothingIsDoneOtherwise) {
    const Trace trace = *make_synthetic(repeating(3, 0));
    const Fleet fleet = fleet_of("6xL40S");
    EXPECT_EQ(
        simulate(trace, fleet, "finish-time", Settings())->waits,
        simulate(trace, fleet, "no-results", Settings())->waits
    );
}

}  // namespace
}  // namespace comfyd::simulate
