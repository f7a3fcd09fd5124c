// Many schedules of the leases of a cluster, each by its own seed (CONTRIBUTING.md, "Simulation").
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "simulation/leases/schedule.hpp"
#include "simulation/seeds.hpp"

namespace comfyd::simulation {
namespace {

constexpr int kShards = 4;

constexpr unsigned kSecondsMax = 60;  // of one schedule, which takes less than a millisecond

std::optional<std::string> run_schedule(LeaseSchedule& schedule, std::uint64_t seed) {
    seed_now = seed;
    ::alarm(kSecondsMax);
    auto broken = schedule.run();
    ::alarm(0);
    return broken;
}

class LeaseSimulation : public testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() { tell_seed_when_it_ends_badly(); }
};

TEST_P(LeaseSimulation, EverySeedKeepsTheRules) {
    if (::getenv("COMFYD_SIMULATE_SEED") != nullptr) {
        const auto seed = number_from("COMFYD_SIMULATE_SEED", 0);
        LeaseSchedule schedule(seed, Break::none, GetParam() == 0);
        const auto broken = run_schedule(schedule, seed);
        EXPECT_FALSE(broken) << *broken;
        return;
    }
    const auto first = number_from("COMFYD_SIMULATE_FROM", 1);
    const auto count = number_from("COMFYD_SIMULATE_COUNT", COMFYD_SIMULATIONS);
    int takes = 0;
    int excused = 0;
    for (auto seed = first + static_cast<std::uint64_t>(GetParam()); seed < first + count;
         seed += kShards) {
        LeaseSchedule schedule(seed, Break::none, false);
        if (const auto broken = run_schedule(schedule, seed)) {
            LeaseSchedule(seed, Break::none, true).run();
            FAIL() << *broken << "\nAgain: COMFYD_SIMULATE_SEED=" << seed
                   << " lease_simulation_test --gtest_filter='*/0'";
        }
        takes += schedule.rules().takes();
        excused += schedule.rules().excused();
    }
    std::printf(
        "the lead was taken %d times; %d prompts ran twice on a plain worker, each sent by a "
        "leader that was stopped between the look at its trust and the send\n",
        takes,
        excused
    );
}
INSTANTIATE_TEST_SUITE_P(Shard, LeaseSimulation, testing::Range(0, kShards));

// A simulation that cannot find what is left out is none.
struct LeftOut {
    const char* name;
    Break what;

    friend void PrintTo(const LeftOut& shown, std::ostream* out) { *out << shown.name; }
};
class LeaseSimulationWithout : public testing::TestWithParam<LeftOut> {};

TEST_P(LeaseSimulationWithout, IsFound) {
    constexpr std::uint64_t kEnough = 20'000;
    std::optional<std::string> broken;
    std::uint64_t seed = 0;
    while (!broken && seed < kEnough) {
        broken = LeaseSchedule(++seed, GetParam().what, false).run();
    }
    ASSERT_TRUE(broken);
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), broken->c_str());
}
INSTANTIATE_TEST_SUITE_P(
    Rule,
    LeaseSimulationWithout,
    testing::Values(
        LeftOut{"TrustFromTheSending", Break::trust_from_answer},
        LeftOut{"AClockThatNobodySets", Break::trust_by_wall_clock},
        LeftOut{"Trust", Break::no_trust},
        LeftOut{"QuietTime", Break::no_quiet_time},
        LeftOut{"TheFenceOfTheLedger", Break::no_fence_in_ledger},
        LeftOut{"TheFenceOfAWorker", Break::no_fence_in_worker}
    ),
    [](const auto& info) { return info.param.name; }
);

// How long nobody leads, when nothing else is in the way. Requests take up to 20 ms each way.
class TakeOver : public testing::TestWithParam<int> {
protected:
    TakeOver() {
        schedule_.be_calm();
        schedule_.pass(Millis(10'000 + 37 * GetParam()));
    }
    void TearDown() override { EXPECT_FALSE(schedule_.rules().broken()); }
    // Until the lead is taken.
    Millis wait() {
        const int before = schedule_.rules().takes();
        Millis waited{0};
        while (schedule_.rules().takes() == before && waited < Millis(30'000)) {
            schedule_.pass(Millis(5));
            waited += Millis(5);
        }
        return waited;
    }

    LeaseSchedule schedule_{static_cast<std::uint64_t>(GetParam() + 1), Break::none, false};
};
constexpr Millis kOnTheWay{100};

TEST_P(TakeOver, AfterAResignation) {
    schedule_.stop(*schedule_.find_leader());
    EXPECT_LE(wait(), cluster::kTryEvery + kOnTheWay);
}

TEST_P(TakeOver, AfterAKill) {
    schedule_.kill(*schedule_.find_leader());
    EXPECT_LE(wait(), cluster::kTryEvery + kOnTheWay);
}

TEST_P(TakeOver, AfterAStop) {
    schedule_.find_leader()->pause(Millis(20'000));
    EXPECT_LE(wait(), cluster::kLeaseLife + cluster::kTryEvery + kOnTheWay);
}
INSTANTIATE_TEST_SUITE_P(At, TakeOver, testing::Range(0, 20));

}  // namespace
}  // namespace comfyd::simulation

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // Every schedule is full of what would be logged.
    comfyd::log::configure(comfyd::log::Level::error, comfyd::log::Format::text);
    return RUN_ALL_TESTS();
}
