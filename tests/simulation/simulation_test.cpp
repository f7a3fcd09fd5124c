// Many schedules of the whole domain, each by its own seed (CONTRIBUTING.md, "Simulation").
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "base/log.hpp"
#include "simulation/schedule.hpp"
#include "simulation/seeds.hpp"

namespace comfyd::simulation {
namespace {

constexpr int kShards = 8;
constexpr unsigned kSecondsMax = 60;  // of one schedule, which takes less than a millisecond

std::optional<std::string> run_schedule(std::uint64_t seed, bool keeps_journal) {
    seed_now = seed;
    ::alarm(kSecondsMax);
    Schedule schedule(seed, keeps_journal);
    auto broken = schedule.run();
    ::alarm(0);
    return broken;
}

class Simulation : public testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() { tell_seed_when_it_ends_badly(); }
};

TEST_P(Simulation, EverySeedKeepsTheRules) {
    if (::getenv("COMFYD_SIMULATE_SEED") != nullptr) {
        const auto broken = run_schedule(number_from("COMFYD_SIMULATE_SEED", 0), GetParam() == 0);
        EXPECT_FALSE(broken) << *broken;
        return;
    }
    const auto first = number_from("COMFYD_SIMULATE_FROM", 1);
    const auto count = number_from("COMFYD_SIMULATE_COUNT", COMFYD_SIMULATIONS);
    for (auto seed = first + static_cast<std::uint64_t>(GetParam()); seed < first + count;
         seed += kShards) {
        if (const auto broken = run_schedule(seed, false)) {
            run_schedule(seed, true);
            FAIL() << *broken << "\nAgain: COMFYD_SIMULATE_SEED=" << seed
                   << " simulation_test --gtest_filter='*/0'";
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Shard, Simulation, testing::Range(0, kShards));

}  // namespace
}  // namespace comfyd::simulation

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    // Every schedule is full of what would be logged.
    if (::getenv("COMFYD_SIMULATE_SEED") == nullptr) {
        comfyd::log::configure(comfyd::log::Level::error, comfyd::log::Format::text);
    }
    return RUN_ALL_TESTS();
}
