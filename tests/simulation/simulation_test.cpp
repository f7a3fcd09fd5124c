// Many schedules of the whole domain, each by its own seed (CONTRIBUTING.md, "Simulation").
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "base/log.hpp"
#include "simulation/schedule.hpp"

namespace comfyd::simulation {
namespace {

constexpr int kShards = 8;
constexpr unsigned kSecondsMax = 60;  // of one schedule, which takes less than a millisecond

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
    const char* text = ::getenv(name);
    return text == nullptr ? otherwise : std::stoull(text);
}

std::atomic<std::uint64_t> seed_now = 0;

// A failed assertion, or a loop without an end: which schedule it was is told all the same.
void tell_seed(int signal) {
    char text[100];
    const int size = std::snprintf(
        text,
        sizeof text,
        "\nCOMFYD_SIMULATE_SEED=%llu\n",
        static_cast<unsigned long long>(seed_now)
    );
    static_cast<void>(!::write(STDERR_FILENO, text, static_cast<std::size_t>(size)));
    ::signal(signal, SIG_DFL);
    ::raise(signal == SIGALRM ? SIGABRT : signal);
}

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
    static void SetUpTestSuite() {
        ::signal(SIGABRT, tell_seed);
        ::signal(SIGALRM, tell_seed);
        ::signal(SIGSEGV, tell_seed);
    }
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
