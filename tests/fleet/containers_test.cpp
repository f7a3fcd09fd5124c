// A pool of containers through the whole program, on a real dockerd and a real podman: what it does
// with jobs while machines come and go, and what an operator sees meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/container_fleet.hpp"

namespace comfyd::support {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

using Kind = ContainerEngine::Kind;

class FleetOfContainers : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(
    Real,
    FleetOfContainers,
    testing::Values(Kind::docker, Kind::podman),
    [](const auto& kind) { return kind.param == Kind::docker ? "docker" : "podman"; }
);

// The instance of a line of `comfyd fleet` that has this word.
std::string instance_in(const std::string& table, const std::string& word) {
    const std::size_t at = table.find(word);
    const std::size_t line = at == std::string::npos ? at : table.rfind('\n', at);
    if (line == std::string::npos) {
        return "";
    }
    const std::size_t begin = table.find_first_not_of(' ', line + 1);
    return table.substr(begin, table.find(' ', begin) - begin);
}

TEST_P(FleetOfContainers, IsScaledFromNothingByJobsAloneAndBack) {
    ContainerFleet fleet(
        {.engine = GetParam(), .scaling = "max: 3\n    idle_timeout: 5\n    up_cooldown: 0"}
    );
    EXPECT_TRUE(fleet.containers().empty());
    fleet.submit(50);
    ASSERT_TRUE(fleet.wait_state("ready")) << fleet.comfyd().log();
    EXPECT_THAT(fleet.cli({"fleet", "decisions"}), HasSubstr("no machine is there"));
    for (int i = 0; i < 40; ++i) {
        fleet.submit(1'000);
    }
    fleet.comfyd().restart();
    fleet.expect_jobs_done();
    EXPECT_LE(fleet.containers().size(), 3U);
    EXPECT_TRUE(fleet.wait_no_containers()) << fleet.cli({"fleet"});
    EXPECT_THAT(fleet.cli({"fleet", "decisions"}), HasSubstr("were needed in the last 5 s"));
    fleet.expect_others_untouched();
}

TEST_P(FleetOfContainers, GrowsWorksAndShrinksWhileJobsCome) {
    constexpr int kMachines = 5;
    ContainerFleet fleet({.engine = GetParam()});
    fleet.submit(50);
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("pool default: 0 of 0 ready"));
    EXPECT_THAT(fleet.cli({"explain", fleet.last_job()}), HasSubstr("is queued"));

    EXPECT_THAT(fleet.cli({"fleet", "resize", "default", "5"}), HasSubstr("of 5 ready"));
    for (int i = 0; i < 10; ++i) {
        fleet.submit(50 + 60 * i);
    }
    ASSERT_TRUE(fleet.wait_state("starting"));
    const std::string table = fleet.cli({"fleet"});
    EXPECT_THAT(table, HasSubstr("here")) << "whom it is had from";
    // What a machine prints may be read whether it is ready or not.
    const std::string young = instance_in(table, "here");
    EXPECT_TRUE(wait_until([&] {
        return fleet.cli({"fleet", "logs", young}).find("listening on") != std::string::npos;
    })) << fleet.cli({"fleet", "logs", young});
    ASSERT_TRUE(fleet.wait_settled(kMachines)) << fleet.comfyd().log();
    EXPECT_EQ(fleet.containers().size(), 5U);
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("pool default: 5 of 5 ready"));
    // One for each, or a job would wait.
    const std::size_t before = fleet.runs().size();
    for (int i = 0; i < kMachines; ++i) {
        fleet.submit(1'500);
    }
    ASSERT_TRUE(fleet.wait_begun(fleet.submitted())) << before;

    // Those that run end where they are; the others wait until there is a machine again.
    for (int i = 0; i < 5; ++i) {
        fleet.submit(50);
    }
    fleet.resize(0);
    ASSERT_TRUE(fleet.wait_state("draining"));
    fleet.submit(50);
    ASSERT_TRUE(fleet.wait_settled(0)) << fleet.comfyd().log();
    EXPECT_TRUE(fleet.wait_no_containers());
    const std::string waits = fleet.cli({"explain", fleet.last_job()});
    EXPECT_THAT(waits, HasSubstr("is queued"));
    EXPECT_THAT(waits, Not(HasSubstr("No such")));
    const std::string events = fleet.cli({"fleet", "events"});
    EXPECT_THAT(events, HasSubstr("the pool has more than its size"));
    EXPECT_THAT(events, HasSubstr("gone"));
    EXPECT_THAT(events, Not(HasSubstr("failed")));

    fleet.resize(2);
    fleet.expect_jobs_done();
    fleet.resize(0);
    EXPECT_TRUE(fleet.wait_settled(0));
    EXPECT_TRUE(fleet.wait_no_containers());
    fleet.expect_others_untouched();
}

// Comfyd is killed while they are stopped, and while they are started again.
TEST_P(FleetOfContainers, ThoseThatAreStoppedAreStartedAgain) {
    ContainerFleet fleet({.engine = GetParam(), .parked = 2});
    fleet.resize(3);
    ASSERT_TRUE(fleet.wait_settled(3)) << fleet.comfyd().log();
    for (int i = 0; i < 3; ++i) {
        fleet.submit(500);
    }
    ASSERT_TRUE(fleet.wait_begun(3));
    fleet.resize(0);
    ASSERT_TRUE(fleet.wait_state("parked"));
    fleet.comfyd().kill();
    fleet.comfyd().start();
    ASSERT_TRUE(fleet.wait_settled(0, 2)) << fleet.cli({"fleet"}) << fleet.comfyd().log();
    const auto kept = fleet.containers();
    EXPECT_EQ(kept.size(), 2U);
    EXPECT_TRUE(wait_until([&] { return fleet.running_containers() == 0; }));
    fleet.expect_jobs_done();

    fleet.resize(1);
    fleet.submit(50);
    ASSERT_TRUE(fleet.wait_state("starting"));
    fleet.comfyd().kill();
    fleet.comfyd().start();
    ASSERT_TRUE(fleet.wait_settled(1, 1)) << fleet.cli({"fleet"}) << fleet.comfyd().log();
    EXPECT_EQ(fleet.containers(), kept) << "no other was made";
    EXPECT_EQ(fleet.running_containers(), 1U);
    fleet.expect_jobs_done();

    fleet.resize(3);
    ASSERT_TRUE(fleet.wait_settled(3)) << fleet.comfyd().log();
    EXPECT_EQ(fleet.containers().size(), 3U) << "two of before, and one more";
    EXPECT_TRUE(std::ranges::includes(fleet.containers(), kept));
    fleet.resize(0);
    ASSERT_TRUE(fleet.wait_settled(0, 2)) << fleet.cli({"fleet"});
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("parked"));
    for (const std::string& name : fleet.containers()) {
        fleet.cli({"fleet", "remove", name.substr(name.rfind('-') + 1)});
    }
    EXPECT_TRUE(fleet.wait_settled(0));
    EXPECT_TRUE(fleet.wait_no_containers());
    fleet.expect_others_untouched();
}

// What an operator sets stays over restarts, until another size is configured; then that one
// counts, and what was set before it never again.
TEST_P(FleetOfContainers, TheLatestOfTwoSizesCounts) {
    ContainerFleet fleet({.engine = GetParam()});
    const auto restart = [&fleet] {
        fleet.comfyd().kill();
        fleet.comfyd().start();
    };
    EXPECT_THAT(fleet.cli({"fleet", "resize", "default", "1"}), HasSubstr("of 1 ready"));
    ASSERT_TRUE(fleet.wait_settled(1)) << fleet.comfyd().log();
    restart();
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("of 1 ready"));
    fleet.configure(2);
    restart();
    ASSERT_TRUE(fleet.wait_settled(2)) << fleet.cli({"fleet"});
    fleet.configure(0);
    restart();
    ASSERT_TRUE(fleet.wait_settled(0)) << fleet.cli({"fleet"});
    fleet.resize(1);
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("of 1 ready"));
    EXPECT_THAT(fleet.cli({"fleet", "resize", "default", "configured"}), HasSubstr("of 0 ready"));
    EXPECT_TRUE(fleet.wait_settled(0));
    EXPECT_TRUE(fleet.wait_no_containers());
}

TEST_P(FleetOfContainers, WithoutAGpuRuntimeItSaysWhy) {
    ContainerFleet fleet({.engine = GetParam(), .gpus = 1});
    fleet.submit(50);
    fleet.resize(1);
    const auto says_why = [&] {
        return fleet.cli({"fleet"}).find("can give no GPU to a container") != std::string::npos;
    };
    EXPECT_TRUE(wait_until(says_why)) << fleet.cli({"fleet"});
    EXPECT_THAT(fleet.cli({"fleet"}), HasSubstr("NVIDIA Container Toolkit"));
    EXPECT_THAT(fleet.cli({"fleet", "events"}), HasSubstr("NVIDIA Container Toolkit"));
    EXPECT_THAT(fleet.cli({"explain", fleet.last_job()}), HasSubstr("is queued"));
    EXPECT_TRUE(fleet.wait_no_containers());
    fleet.resize(0);
    EXPECT_TRUE(fleet.wait_settled(0));
    fleet.expect_others_untouched();
}

}  // namespace
}  // namespace comfyd::support
