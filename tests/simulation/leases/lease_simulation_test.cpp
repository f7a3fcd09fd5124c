// Many schedules of the leases of a cluster, each by its own seed (CONTRIBUTING.md, "Simulation").
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <string>

#include "base/log.hpp"
#include "simulation/leases/schedule.hpp"

namespace comfyd::simulation {
namespace {

constexpr int kShards = 4;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* text = ::getenv(name);
    return text == nullptr ? otherwise : std::stoull(text);
}

class LeaseSimulation : public testing::TestWithParam<int> {};

TEST_P(LeaseSimulation, EverySeedKeepsTheRules) {
    if (::getenv("COMFYD_SIMULATE_SEED") != nullptr) {
        const auto seed = number_from("COMFYD_SIMULATE_SEED", 0);
        const auto broken = LeaseSchedule(seed, Break::none, GetParam() == 0).run();
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
        if (const auto broken = schedule.run()) {
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
        LeftOut{"RenewalOfOneTermAlone", Break::renewal_of_any_leader},
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
    // Until another node leads.
    Millis wait(const Node* before) {
        Millis waited{0};
        while ((schedule_.find_leader() == nullptr || schedule_.find_leader() == before) &&
               waited < Millis(30'000)) {
            schedule_.pass(Millis(5));
            waited += Millis(5);
        }
        return waited;
    }

    LeaseSchedule schedule_{static_cast<std::uint64_t>(GetParam() + 1), Break::none, false};
};
constexpr Millis kOnTheWay{100};

TEST_P(TakeOver, AfterAResignation) {
    Node* leader = schedule_.find_leader();
    schedule_.stop(*leader);
    EXPECT_LE(wait(leader), cluster::kTryEvery + kOnTheWay);
}

TEST_P(TakeOver, AfterAKill) {
    schedule_.kill(*schedule_.find_leader());
    EXPECT_LE(wait(nullptr), cluster::kTryEvery + kOnTheWay);
}

TEST_P(TakeOver, AfterAStop) {
    Node* leader = schedule_.find_leader();
    leader->pause(Millis(20'000));
    EXPECT_LE(wait(leader), cluster::kLeaseLife + cluster::kTryEvery + kOnTheWay);
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
