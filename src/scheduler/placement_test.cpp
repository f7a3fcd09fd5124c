// What the placement is for: many models on few workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;

struct Outcome {
    double makespan_s = 0;
    std::uint64_t loads = 0;
    double bound_s = 0;
};

// Checkpoints are asked for by Zipf's law; all jobs wait from the start.
Outcome run_zipf(
    PolicyName policy, std::uint32_t seed, double stay_factor = Options{}.stay_factor
) {
    constexpr int kWorkers = 8;
    constexpr int kCheckpoints = 20;
    constexpr int kJobs = 2000;
    TableEstimates estimates;
    Options options;
    options.policy = policy;
    options.stay_factor = stay_factor;
    Scheduler scheduler(estimates, options);
    for (int i = 0; i < kWorkers; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    std::vector<ProfilePtr> profiles;
    std::vector<double> weights;
    for (int i = 0; i < kCheckpoints; ++i) {
        profiles.push_back(profile("c" + std::to_string(i)));
        weights.push_back(1.0 / (i + 1));
    }
    std::mt19937 random(seed);
    std::discrete_distribution<std::size_t> pick(weights.begin(), weights.end());
    std::set<std::size_t> used;
    for (std::uint64_t i = 0; i < kJobs; ++i) {
        const std::size_t checkpoint = pick(random);
        used.insert(checkpoint);
        scheduler.add(job_id(i), keys(profiles[checkpoint], kStart));
    }
    World world(scheduler);
    world.run();
    EXPECT_EQ(world.placed.size(), static_cast<std::size_t>(kJobs));
    Outcome outcome;
    outcome.makespan_s = world.now_s;
    outcome.loads = scheduler.loads();
    outcome.bound_s = (kJobs * 1.0 + static_cast<double>(used.size()) * 20.0) / kWorkers;
    return outcome;
}

TEST(Placement, ManyModelsOnFewWorkers) {
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        SCOPED_TRACE(seed);
        const Outcome ours = run_zipf(PolicyName::finish_time, seed);
        EXPECT_LE(ours.makespan_s, 1.2 * ours.bound_s);
        EXPECT_LE(ours.loads, 32U);
        // What a queue does that knows nothing of models.
        const Outcome fifo = run_zipf(PolicyName::fifo, seed);
        EXPECT_GE(fifo.makespan_s, 10 * ours.makespan_s);
        EXPECT_GE(fifo.loads, 1600U);
    }
}

// All jobs came at once, so nothing is passed over for too long, however little that is.
TEST(Placement, StayingDependsOnAgeAndNotOnTheFactorAlone) {
    EXPECT_EQ(
        run_zipf(PolicyName::finish_time, 7, 1).loads,
        run_zipf(PolicyName::finish_time, 7, 100).loads
    );
}

// A worker that could go on with its models for ever gives them up for a job that has waited for
// the allowed time longer, and comes back to them.
TEST(Placement, WarmFirstPassesOverAnOlderJobOnlyForSoLong) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    scheduler.set_worker(worker("w"));
    World world(scheduler);
    std::uint64_t number = 0;
    for (int i = 0; i < 3000; ++i) {
        world.submit_at(i * 0.9, job_id(++number), keys(profile("hot"), at(0)));
    }
    const JobId rare = job_id(++number);
    world.submit_at(50, rare, keys(profile("rare"), at(0)));
    world.run();
    const auto placed = std::ranges::find_if(world.placed, [&rare](const World::Placed& one) {
        return one.decision.job == rare;
    });
    ASSERT_NE(placed, world.placed.end());
    EXPECT_GT(placed->decision.waited_s, 20) << "the load is not made at once";
    EXPECT_LT(placed->decision.waited_s, 250) << "5 x 20 s, twice, and a run";
    EXPECT_EQ(scheduler.loads(), 3U);
}

}  // namespace
}  // namespace comfyd::scheduler
