#include "autoscale/decide.hpp"

#include <gmock/gmock.h>

namespace comfyd::autoscale {
namespace {

using scheduler::WaitClass;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Time kStart{Millis(1'700'000'000'000)};  // a Tuesday, 22:13:20

class Autoscale : public testing::Test {
protected:
    Autoscale() {
        pool_.name = "default";
        decide_now();  // what there is at first has been there before
    }
    Decision decide_now() { return decide(pool_, memory_, now_); }
    // Looks every second, as a keeper does.
    Decision after(Millis time) {
        const Time until = now_ + time;
        Decision decision;
        while (now_ < until) {
            now_ += seconds(1);
            decision = decide_now();
        }
        return decision;
    }
    void wait(std::size_t jobs, double each_s, WaitClass wait_class = WaitClass::medium) {
        const double work = static_cast<double>(jobs) * each_s;
        pool_.waiting.push_back({wait_class, "m", 0, jobs, work});
        pool_.arrived_s += wait_class == WaitClass::batch ? 0 : work;
    }
    void have(int ready, int coming = 0, int jobs_each = 0) {
        pool_.machines.clear();
        for (int i = 0; i < ready + coming; ++i) {
            Machine machine;
            machine.is_ready = i < ready;
            machine.ready_in_s = machine.is_ready ? 0 : 60;
            machine.jobs = machine.is_ready ? jobs_each : 0;
            machine.left_s = machine.jobs;
            machine.usd_per_hour = 1;
            pool_.machines.push_back(machine);
        }
    }

    PoolView pool_;
    Memory memory_;
    Time now_ = kStart;
};

TEST_F(Autoscale, NothingWaitsAndNothingIsStarted) {
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 0);
    EXPECT_EQ(decision.why, Why::enough);
    EXPECT_EQ(decision.sentence, "0 machines do: nothing waits");
}

TEST_F(Autoscale, TheFirstJobStartsAMachineAtOnce) {
    wait(1, 4);
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 1);
    EXPECT_EQ(decision.why, Why::zero);
    EXPECT_EQ(
        decision.sentence,
        "start 1: 1 job waits with 4 s of work and no machine is there; those of class medium "
        "shall start within 120 s"
    );
}

TEST_F(Autoscale, MuchWorkStartsAsManyAsKeepItsTargetAndNoMoreThanThereMayBe) {
    wait(100, 4, WaitClass::low);
    EXPECT_EQ(decide_now().machines, 1) << "ten minutes are long";
    pool_.waiting.clear();
    wait(100, 4, WaitClass::high);
    EXPECT_GT(decide_now().machines, 5);
    pool_.waiting.clear();
    wait(10'000, 4);
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 10);
    pool_.settings.max = 200;
    EXPECT_GT(decide_now().machines, 100);
}

TEST_F(Autoscale, NoMoreMachinesThanJobs) {
    wait(2, 3'000, WaitClass::high);
    EXPECT_EQ(decide_now().machines, 2);
}

TEST_F(Autoscale, MachinesOnTheWayCount) {
    wait(100, 4);
    const int first = decide_now().machines;
    have(0, first);
    EXPECT_EQ(after(seconds(30)).machines, first);
}

TEST_F(Autoscale, NoMachineIsStartedForWorkThatIsDoneWhenItIsThere) {
    have(4, 0, 1);
    after(seconds(90));
    wait(15, 10, WaitClass::high);  // done in 40 s; a start takes 90
    EXPECT_EQ(decide_now().machines, 4);
}

TEST_F(Autoscale, AStartIsFollowedByAnotherOnlyAfterAWhile) {
    pool_.settings.max = 100;
    pool_.settings.up_cooldown = seconds(30);
    wait(100, 4);
    const int first = decide_now().machines;
    have(0, first);
    wait(100, 4);
    const Decision held = decide_now();
    EXPECT_EQ(held.machines, first);
    EXPECT_EQ(held.why, Why::cooldown);
    EXPECT_GT(after(seconds(30)).machines, first);
}

TEST_F(Autoscale, ABurstDoesNotWait) {
    pool_.settings.max = 1'000;
    have(2, 0, 1);
    after(seconds(120));
    wait(1'000, 4);
    const Decision grown = decide_now();
    ASSERT_GT(grown.machines, 2);
    have(2, grown.machines - 2, 1);
    int most = grown.machines;
    bool was_told = false;
    for (int i = 0; i < 10; ++i) {
        wait(300, 4);
        const Decision decision = after(seconds(1));
        EXPECT_NE(decision.why, Why::cooldown) << decision.sentence;
        EXPECT_GE(decision.machines, most) << "nothing shrinks";
        was_told = was_told || decision.why == Why::burst;
        most = decision.machines;
        have(2, most - 2, 1);
    }
    EXPECT_GT(most, 2 * grown.machines);
    EXPECT_TRUE(was_told);
    pool_.waiting.clear();
    EXPECT_EQ(after(seconds(59)).machines, most);
}

TEST_F(Autoscale, WhatIsNotNeededGoesAfterTheIdleTimeoutAndNotBefore) {
    wait(400, 4);
    decide_now();
    have(5);
    pool_.waiting.clear();
    const Decision kept = after(seconds(200));
    EXPECT_EQ(kept.machines, 5);
    EXPECT_EQ(kept.why, Why::kept);
    const Decision gone = after(seconds(200));
    EXPECT_EQ(gone.machines, 0);
    EXPECT_EQ(gone.why, Why::idle);
    EXPECT_THAT(gone.sentence, HasSubstr("stop 5 of 5 machines"));
}

// Its memory is gone, and what there is has just been needed for all that it knows.
TEST_F(Autoscale, ARestartStopsNothing) {
    have(5);
    memory_ = Memory::from_json(memory_.to_json());
    EXPECT_EQ(after(seconds(299)).machines, 5);
    EXPECT_EQ(after(seconds(10)).machines, 0);
}

TEST_F(Autoscale, BusyMachinesAreNeeded) {
    have(3, 0, 1);
    EXPECT_EQ(after(seconds(1'000)).machines, 3);
}

TEST_F(Autoscale, BestEffortUsesWhatIsPaidAnyway) {
    wait(1'000, 60, WaitClass::batch);
    EXPECT_EQ(decide_now().machines, 0);
    have(2);
    memory_ = Memory();
    for (Machine& machine : pool_.machines) {
        machine.best_effort = 1;
    }
    EXPECT_EQ(after(seconds(100)).machines, 2);
    EXPECT_EQ(after(seconds(300)).machines, 0) << "it keeps nothing alive";
    have(0);
    const Decision early = after(std::chrono::minutes(59));
    EXPECT_EQ(early.machines, 0);
    const Decision late = after(std::chrono::minutes(2));
    EXPECT_EQ(late.machines, 1);
    EXPECT_EQ(late.why, Why::batch);
    have(1);
    pool_.machines.front().best_effort = 1;
    EXPECT_EQ(after(seconds(1'000)).machines, 1) << "until it is done";
    pool_.waiting.clear();
    pool_.machines.front().best_effort = 0;
    EXPECT_EQ(after(seconds(1'000)).machines, 0);
}

TEST_F(Autoscale, MinimaHold) {
    pool_.settings.min = 2;
    EXPECT_EQ(decide_now().machines, 2);
    have(2);
    EXPECT_EQ(after(seconds(1'000)).machines, 2);
    // On Wednesdays from 8 to 10, over 9 hours from the start.
    pool_.settings.schedule.push_back({0b0000100, 8 * 60, 10 * 60, 5});
    EXPECT_EQ(decide_now().machines, 2);
    now_ = *parse_rfc3339("2023-11-15T07:58:45Z");
    const Decision early = decide_now();
    EXPECT_EQ(early.machines, 5) << "a start takes 90 s";
    EXPECT_EQ(early.why, Why::minimum);
    have(5);
    now_ = *parse_rfc3339("2023-11-15T10:00:00Z");
    decide_now();
    EXPECT_EQ(after(seconds(400)).machines, 2);
    now_ = *parse_rfc3339("2023-11-16T09:00:00Z");
    EXPECT_EQ(after(seconds(400)).machines, 2) << "Thursday";
}

TEST_F(Autoscale, SpareOnesAreHadWhileAnyWorks) {
    pool_.settings.spare = 2;
    EXPECT_EQ(decide_now().machines, 0);
    have(3, 0, 1);
    EXPECT_EQ(decide_now().machines, 5);
    have(3);
    EXPECT_EQ(after(seconds(1'000)).machines, 0);
}

TEST_F(Autoscale, MachinesThatIdleThoughWorkWaitsAreNotJoinedByOthers) {
    wait(1'000, 10);
    have(4);
    pool_.machines.front().jobs = 1;  // its tenant may run one at a time
    const Decision decision = after(seconds(20));
    EXPECT_EQ(decision.why, Why::no_use);
    EXPECT_THAT(decision.sentence, HasSubstr("3 idle though"));
    EXPECT_EQ(after(seconds(310)).machines, 1) << "and they go, too";
    have(1, 0, 1);
    EXPECT_EQ(after(seconds(200)).machines, 1) << "and are not started again";
}

TEST_F(Autoscale, JobsThatNobodyCanRunStartNothing) {
    have(1);
    wait(1'000, 10);
    pool_.waiting.front().is_runnable = false;
    EXPECT_EQ(after(seconds(400)).machines, 0);
}

TEST_F(Autoscale, JobsForAnotherKindOfMachineGetOneBesideThoseThatIdle) {
    have(2);
    wait(1, 10);
    pool_.waiting.front().is_for_others = true;
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 3);
    EXPECT_EQ(decision.why, Why::others);
    have(2, 1);
    EXPECT_EQ(after(seconds(60)).machines, 3) << "one is on its way";
}

TEST_F(Autoscale, WorkersOfSomebodyElseCount) {
    pool_.others = 10;
    wait(20, 4);
    EXPECT_EQ(after(seconds(5)).machines, 0);
    wait(2'000, 4);
    EXPECT_GT(after(seconds(5)).machines, 5);
}

TEST_F(Autoscale, SlotsAreCounted) {
    wait(400, 10);
    pool_.settings.max = 1'000;
    const int alone = decide_now().machines;
    memory_ = Memory();
    pool_.settings.slots = 4;
    EXPECT_NEAR(decide_now().machines, alone / 4, 1);
}

TEST_F(Autoscale, WithoutMoneyNothingIsStartedAndAllGoOnceTheyAreDone) {
    have(3, 1, 0);
    pool_.machines.front().jobs = 1;
    wait(1'000, 4);
    pool_.budget = Tightest{Span::day, 20, 20, kStart + std::chrono::hours(1)};
    pool_.budget_of = "the fleet";
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 0);
    EXPECT_TRUE(decision.drains) << "the busy one ends what it does";
    EXPECT_EQ(decision.why, Why::budget);
    EXPECT_EQ(
        decision.sentence,
        "4 machines (1 on the way), which end what they do and go: of the 20.00 USD that the fleet "
        "may cost in a "
        "day, 20.00 USD are spent; it goes on at 2023-11-14T23:13:20.000Z"
    );
    pool_.budget->spent_usd = 10;
    have(4, 0, 1);
    EXPECT_GT(after(seconds(60)).machines, 4);
}

TEST_F(Autoscale, WhatALittleMoneyCannotStartIsNotStarted) {
    wait(1'000, 4);
    pool_.offers = {{.place = "cloud", .usd_per_hour = 4}};
    pool_.budget = Tightest{Span::day, 20, 19.95, kStart + std::chrono::hours(1)};
    EXPECT_EQ(decide_now().machines, 0) << "90 s of 4 USD an hour are 0.10 USD";
    pool_.budget->spent_usd = 19;
    EXPECT_EQ(decide_now().machines, 10);
}

TEST_F(Autoscale, AllTogetherCostNoMoreAnHourThanTheyMay) {
    wait(10'000, 4);
    pool_.offers = {{.place = "cloud", .usd_per_hour = 0.4}};
    pool_.usd_per_hour_max = 1.3;
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 3);
    have(3, 0, 1);
    for (Machine& machine : pool_.machines) {
        machine.usd_per_hour = 0.4;
    }
    const Decision full = after(seconds(60));
    EXPECT_EQ(full.machines, 3);
    EXPECT_THAT(full.sentence, HasSubstr("1.30 USD an hour"));
}

TEST_F(Autoscale, WorkOfPastDaysIsForeseen) {
    // Three days on which five machines were busy from 6 to 7.
    now_ = *parse_rfc3339("2023-11-15T00:00:00Z");
    for (int minute = 0; minute < 3 * 24 * 60; ++minute) {
        const bool is_busy = minute / 60 % 24 == 6;
        pool_.arrived_s += is_busy ? 5 * 60 : 0;
        now_ += std::chrono::minutes(1);
        decide_now();
    }
    now_ = *parse_rfc3339("2023-11-18T05:50:00Z");
    EXPECT_EQ(decide_now().machines, 0);
    now_ = *parse_rfc3339("2023-11-18T05:59:00Z");
    const Decision decision = decide_now();
    EXPECT_EQ(decision.machines, 5) << decision.sentence;
    EXPECT_EQ(decision.why, Why::forecast);
    Memory stored = Memory::from_json(memory_.to_json());
    EXPECT_EQ(decide(pool_, stored, now_).machines, 5) << "after a restart, too";
    pool_.settings.uses_forecast = false;
    EXPECT_EQ(decide_now().machines, 0);
}

TEST(CheapestFirst, IsWhatEndsTheWorkForTheLeast) {
    Starts starts;
    for (int i = 0; i < 5; ++i) {
        starts.note("quick", 10);
        starts.note("slow", 600);
    }
    const std::vector<Offer> offers{
        {.place = "slow", .usd_per_hour = 0.5},
        {.place = "quick", .usd_per_hour = 1},
        {.place = "fast", .usd_per_hour = 2, .speed = 4},
    };
    EXPECT_THAT(cheapest_first(offers, starts, 0, 60), ElementsAre(1, 0, 2));
    EXPECT_THAT(cheapest_first(offers, starts, 0, 36'000), ElementsAre(0, 2, 1));
    auto unpriced = offers;
    unpriced[1].usd_per_hour.reset();
    EXPECT_THAT(cheapest_first(unpriced, starts, 0, 60), ElementsAre(0, 1, 2)) << "as written";
    EXPECT_TRUE(cheapest_first({}, starts, 0, 60).empty());
}

}  // namespace
}  // namespace comfyd::autoscale
