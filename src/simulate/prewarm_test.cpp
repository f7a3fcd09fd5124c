#include <gtest/gtest.h>

#include "simulate/prewarm_gain.hpp"
#include "simulate/synthetic.hpp"

namespace comfyd::simulate {
namespace {

Fleet fleet_of(const char* text) {
    return *parse_fleet(text, GpuTable());
}

scheduler::ProfilePtr profile_of(const std::string& model) {
    auto profile = std::make_shared<scheduler::Profile>();
    profile->models = {{"checkpoint/" + model, 6'000'000'000}};
    profile->shape = "shape of " + model;
    profile->heuristic_seconds = 4;
    return profile;
}

// Three jobs of one kind and, when those are done, one of another, again and again: when the next
// three come, the worker has what only the fourth needs.
Trace make_rounds(int rounds, double round_s) {
    Trace trace;
    for (const char* model : {"often", "seldom"}) {
        trace.profiles.push_back({profile_of(model), 4, 1});
    }
    trace.tenants = {"a"};
    for (int round = 0; round < rounds; ++round) {
        for (const std::uint32_t profile : {0U, 0U, 0U, 1U}) {
            TraceJob job;
            job.at_ms = static_cast<std::int64_t>(1'000 * round_s * round) + 20'000 * profile;
            job.profile = profile;
            trace.jobs.push_back(job);
        }
    }
    return trace;
}

// Of workers that hold the models of their latest run alone.
PrewarmGain gain_of(const Trace& trace, const char* text, std::set<std::string> pinned = {}) {
    Settings settings;
    settings.load_jitter = 0;
    settings.pinned = std::move(pinned);
    Fleet fleet = fleet_of(text);
    for (GpuType& type : fleet) {
        type.model_memory_bytes = 0;
    }
    const auto gain = find_prewarm_gain(trace, fleet, "finish-time", settings);
    EXPECT_TRUE(gain);
    return *gain;
}

TEST(PrewarmGain, ThereIsOneWhereAWorkerIdlesWithWhatIsSeldomNeeded) {
    const PrewarmGain gain = gain_of(make_rounds(60, 120), "1xL40S");
    EXPECT_TRUE(gain.is_gain()) << gain.sentence();
    EXPECT_LT(gain.with.mean_s, gain.without.mean_s - 2) << "nearly the load of 3 s for each job";
    EXPECT_LE(gain.with.loads, gain.without.loads + 1);
}

TEST(PrewarmGain, ThereIsNoneWhereNothingIdlesOrAllIsLoaded) {
    EXPECT_FALSE(gain_of(make_rounds(60, 22), "1xL40S").is_gain()) << "busy all the time";
    EXPECT_FALSE(gain_of(make_rounds(60, 120), "8xL40S").is_gain()) << "all stays loaded";
    EXPECT_FALSE(gain_of(make_rounds(1, 120), "1xL40S").is_gain()) << "nothing comes again";
}

// What an operator has pinned is a part of what would be done.
TEST(PrewarmGain, APinnedModelThatTakesTheWorkerFromWhatOftenComesIsNone) {
    Trace trace = make_rounds(60, 120);
    trace.profiles.push_back({profile_of("once"), 4, 1});
    TraceJob once;
    once.profile = 2;
    once.at_ms = 60'000;
    trace.jobs.push_back(once);
    sort_jobs(trace.jobs);
    EXPECT_TRUE(gain_of(trace, "1xL40S").is_gain());
    EXPECT_TRUE(gain_of(trace, "1xL40S", {"often"}).is_gain());
    const PrewarmGain gain = gain_of(trace, "1xL40S", {"once"});
    EXPECT_FALSE(gain.is_gain()) << gain.sentence();
}

TEST(PrewarmGain, MoreThanHalfMoreLoadsAreNoGain) {
    const PrewarmGain::Side without{.mean_s = 10, .p95_s = 20, .loads = 100};
    EXPECT_TRUE((PrewarmGain{without, {9, 20, 150}}).is_gain());
    EXPECT_TRUE((PrewarmGain{without, {10, 19, 90}}).is_gain());
    EXPECT_FALSE((PrewarmGain{without, {9, 20, 151}}).is_gain());
    EXPECT_FALSE((PrewarmGain{without, {9, 21, 100}}).is_gain()) << "many wait longer";
    EXPECT_FALSE((PrewarmGain{without, {9.95, 19.9, 100}}).is_gain()) << "hardly any";
    EXPECT_FALSE((PrewarmGain{without, without}).is_gain());
}

// A job that needs something else than what a worker loads waits for the rest of that load.
TEST(PrewarmGain, WhatIsLoadedInVainIsReckonedWith) {
    Trace trace = make_rounds(60, 120);
    TraceJob other;
    other.profile = 1;
    for (int round = 0; round < 60; ++round) {  // as the worker has begun to load
        other.at_ms = 120'000 * round + 37'000;
        trace.jobs.push_back(other);
    }
    sort_jobs(trace.jobs);
    const PrewarmGain gain = gain_of(trace, "1xL40S");
    EXPECT_GT(gain.with.loads, gain.without.loads);
}

class PrewarmSeeds : public testing::TestWithParam<std::uint64_t> {};

INSTANTIATE_TEST_SUITE_P(All, PrewarmSeeds, testing::Range<std::uint64_t>(1, 5));

TEST_P(PrewarmSeeds, EveryJobRunsOnceAndItIsTheSameEveryTime) {
    SyntheticOptions options;
    options.seed = GetParam();
    options.jobs = 800;
    options.rate = 0.4;
    options.models = 12;
    options.arrivals = GetParam() % 2 == 0 ? Arrivals::bursty : Arrivals::poisson;
    const Trace trace = *make_synthetic(options);
    Settings settings;
    settings.seed = GetParam();
    settings.failure_rate = 0.05;
    settings.outage_hours = 0.2;
    settings.repair_seconds = 60;
    settings.prewarms = true;
    const auto first = simulate(trace, fleet_of("4xL40S"), "finish-time", settings);
    const auto second = simulate(trace, fleet_of("4xL40S"), "finish-time", settings);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->completed + first->failed_jobs, 800U);
    EXPECT_GT(first->prewarms, 0U);
    EXPECT_EQ(first->turnarounds, second->turnarounds);
    EXPECT_EQ(first->prewarms, second->prewarms);
    for (std::size_t at = 0; at < trace.jobs.size(); ++at) {
        ASSERT_GE(first->waits[at], 0);
        ASSERT_GE(first->turnarounds[at], first->waits[at]);
    }
}

}  // namespace
}  // namespace comfyd::simulate
