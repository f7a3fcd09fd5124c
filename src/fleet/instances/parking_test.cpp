// Machines that are stopped instead of removed, and started again.
#include <algorithm>

#include "fleet/instances/plan_fixture.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

class ParkingTest : public PlanTest {
protected:
    ParkingTest() {
        view_.parking = {"cloud"};
        view_.pools[0].parked = 1;
        view_.pools[0].size = 0;
        view_.instances.reserve(8);  // rows are kept by reference
    }

    // One that serves, or is stopped as its state says.
    Instance& have(InstanceState state) {
        const std::string machine = "m" + std::to_string(view_.instances.size());
        Instance& row = add(state, machine);
        row.url = "http://" + machine;
        row.since[ready] = view_.now - minutes(10);
        view_.aside[row.id].is_employed = state == ready;
        if (state == parked) {
            row.since[parked] = view_.now - minutes(5);
        }
        Machine& shown =
            show(row, state == parked ? Machine::State::stopped : Machine::State::running, machine);
        shown.url = row.url;
        return row;
    }
    Machine& machine_of(const Instance& row) {
        return *std::ranges::find(list().machines, row.machine, &Machine::id);
    }
    std::vector<Kind> kinds() {
        std::vector<Kind> all;
        for (const Step& one : plan(view_)) {
            all.push_back(one.kind);
        }
        return all;
    }
};

TEST_F(ParkingTest, OfThoseTooManySomeAreStopped) {
    have(ready);
    have(ready);
    const auto steps = plan(view_);
    ASSERT_THAT(steps, SizeIs(2));
    EXPECT_EQ(steps[0].kind, Kind::drain);
    EXPECT_EQ(steps[1].kind, Kind::drain);
    EXPECT_THAT(
        (std::vector{steps[0].to, steps[1].to}), testing::UnorderedElementsAre(parked, removing)
    );
}

TEST_F(ParkingTest, APoolThatIsScaledStopsIdleOnesAndBeginsWithThem) {
    PoolGoal& pool = view_.pools[0];
    pool.is_scaled = true;
    pool.size = 1;
    pool.why = "nothing waits";
    Instance& busy = have(ready);
    Instance& idle = have(ready);
    view_.aside[busy.id].jobs = 1;
    EXPECT_EQ(step()->instance, idle.id);
    EXPECT_EQ(step()->to, parked);
    view_.aside[idle.id].jobs = 1;
    EXPECT_FALSE(step()) << "both work";
    view_.aside[idle.id].jobs = 0;
    idle.state = parked;
    idle.since[parked] = view_.now - minutes(5);
    machine_of(idle).state = Machine::State::stopped;
    EXPECT_FALSE(step());
    pool.size = 2;
    pool.why = "3 jobs wait";
    EXPECT_EQ(kind(), Kind::wake);
    EXPECT_EQ(step()->why, "3 jobs wait");
}

TEST_F(ParkingTest, NoneIsWhereNoneMayBe) {
    Instance& row = have(ready);
    EXPECT_EQ(step()->to, parked);
    view_.pools[0].parked = 0;
    EXPECT_EQ(step()->to, removing);
    view_.pools[0].parked = 1;
    view_.parking = {"other"};
    EXPECT_EQ(step()->to, removing) << "its provider keeps no disks";
    view_.parking = {"cloud"};
    row.offer.market = Market::spot;
    EXPECT_EQ(step()->to, removing) << "it would be somebody else's soon";
    row.offer.market = Market::on_demand;
    view_.pools[0].software = "another";
    EXPECT_EQ(step()->to, removing) << "the template is another by now";
    view_.pools[0].software.clear();
    view_.leaving = {row.id};
    EXPECT_EQ(step()->to, removing) << "an operator wants it gone";
    view_.leaving.clear();
    view_.pools.clear();
    EXPECT_EQ(step()->to, removing) << "the pool is not configured any more";
}

TEST_F(ParkingTest, OneThatIsStoppedHasThePlace) {
    have(parked);
    have(ready);
    ASSERT_EQ(kind(), Kind::drain);
    EXPECT_EQ(step()->to, removing);
    view_.pools[0].parked = 2;
    EXPECT_EQ(step()->to, parked);
    view_.pools[0].parked = 0;
    view_.pools[0].size = 1;
    // It is started: the pool has one of one, and no place for one that is stopped.
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_EQ(step()->instance, view_.instances[0].id);
    EXPECT_FALSE(step()->has_failed);
}

TEST_F(ParkingTest, TheirProviderIsToldUntilTheyAreStopped) {
    Instance& row = have(parked);
    EXPECT_FALSE(step()) << "it is stopped";
    machine_of(row).state = Machine::State::running;
    EXPECT_EQ(kind(), Kind::park);
    view_.aside[row.id].switched_at = view_.now;
    EXPECT_FALSE(step()) << "its provider has agreed";
    view_.now += kTellAgain;
    EXPECT_EQ(kind(), Kind::park);
    machine_of(row).state = Machine::State::stopping;
    EXPECT_FALSE(step());
    view_.now += kStopMax;
    ASSERT_EQ(kind(), Kind::leave) << "it costs as if it served";
    EXPECT_TRUE(step()->has_failed);
}

TEST_F(ParkingTest, OneThatIsStoppedIsStartedBeforeAnotherIsOrdered) {
    Instance& old = have(parked);
    view_.pools[0].parked = 2;
    Instance& young = have(parked);
    young.since[parked] = view_.now;
    view_.pools[0].size = 1;
    ASSERT_EQ(kind(), Kind::wake);
    EXPECT_EQ(step()->instance, young.id) << "what it has is newest";
    view_.pools[0].size = 3;
    EXPECT_THAT(kinds(), testing::ElementsAre(Kind::wake, Kind::wake, Kind::request));
    // While it is being started it counts.
    view_.aside[young.id].is_busy = view_.aside[young.id].is_waking = true;
    view_.pools[0].size = 1;
    EXPECT_FALSE(step());
    view_.pools[0].size = 2;
    ASSERT_EQ(kind(), Kind::wake);
    EXPECT_EQ(step()->instance, old.id);
    view_.pools[0].is_paused = true;
    EXPECT_FALSE(step());
}

TEST_F(ParkingTest, WhatCannotBeStartedNowIsNotWaitedFor) {
    Instance& row = have(parked);
    view_.pools[0].size = 1;
    machine_of(row).state = Machine::State::stopping;
    EXPECT_EQ(kind(), Kind::request);
    row.since[parked] = view_.now;
    EXPECT_FALSE(step()) << "it is back sooner than another would be there";
    machine_of(row).state = Machine::State::stopped;
    view_.providers_rest["cloud"] = view_.now + seconds(1);
    EXPECT_EQ(kind(), Kind::request);
    view_.providers_rest.clear();
    view_.aside[row.id].rests_until = view_.now + seconds(1);
    EXPECT_EQ(kind(), Kind::request);
}

TEST_F(ParkingTest, ForWhatJobsAskForAnotherIsOrdered) {
    Instance& row = have(parked);
    row.offer.gpu = "NVIDIA L40S";
    view_.pools[0].size = 1;
    view_.pools[0].wants = {{.gpu = "H200"}};
    EXPECT_EQ(kind(), Kind::request);
    row.offer.gpu = "NVIDIA H200";
    EXPECT_EQ(kind(), Kind::wake);
    row.offer.gpu = "NVIDIA L40S";
    view_.pools[0].size = 2;
    EXPECT_THAT(kinds(), testing::UnorderedElementsAre(Kind::wake, Kind::request));
}

TEST_F(ParkingTest, OneThatWasToldToStartComesUpLikeANewOne) {
    Instance& row = have(parked);
    view_.pools[0].size = 1;
    row.state = starting;
    row.since[starting] = view_.now;
    row.since[creating] = view_.now - minutes(60);
    ASSERT_EQ(kind(), Kind::wake) << "it was not told before comfyd ended";
    view_.aside[row.id].switched_at = view_.now;
    EXPECT_FALSE(step());
    Machine& machine = machine_of(row);
    machine.state = Machine::State::running;
    EXPECT_EQ(kind(), Kind::examine);
    machine.url = "http://elsewhere";
    EXPECT_EQ(kind(), Kind::follow);
    machine.state = Machine::State::failed;
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_FALSE(step()->counts) << "it has served before";
    machine.state = Machine::State::stopped;
    view_.now += view_.pools[0].start_max + seconds(1);
    EXPECT_EQ(kind(), Kind::leave) << "for too long";
}

TEST_F(ParkingTest, OneThatIsGoneOrBrokenIsGivenUp) {
    Instance& row = have(parked);
    machine_of(row).state = Machine::State::failed;
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_TRUE(step()->has_failed);
    list().machines.clear();
    EXPECT_FALSE(step());
    view_.aside[row.id].missed = kMissedMax;
    EXPECT_EQ(kind(), Kind::leave);
    view_.aside[row.id].missed = 0;
    view_.leaving = {row.id};
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_EQ(step()->why, "an operator wants it gone");
}

}  // namespace
}  // namespace comfyd::fleet
