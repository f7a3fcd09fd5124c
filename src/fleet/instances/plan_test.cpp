#include <algorithm>

#include "fleet/instances/plan_fixture.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(PlanTest, ASmallPoolGrows) {
    view_.pools[0].size = 3;
    add(requested, "");
    view_.aside[view_.instances[0].id].is_busy = true;
    const auto steps = plan(view_);
    ASSERT_THAT(steps, SizeIs(2));
    EXPECT_EQ(steps[0].kind, Kind::request);
    EXPECT_EQ(steps[0].why, "the pool has 1 of 3");
}

TEST_F(PlanTest, APausedPoolStartsNothing) {
    view_.pools[0].is_paused = true;
    EXPECT_FALSE(step());
    add(requested, "");
    EXPECT_FALSE(step());
    view_.pools[0].is_paused = false;
    view_.pools[0].rests_until = view_.now + seconds(1);
    EXPECT_FALSE(step());
}

TEST_F(PlanTest, TheNextOfferIsTriedWhileTheFirstRests) {
    add(requested, "");
    ASSERT_EQ(kind(), Kind::create);
    EXPECT_EQ(step()->provider, "cloud");
    view_.offers_rest[{"gpu", 0}] = view_.now + seconds(30);
    EXPECT_EQ(step()->provider, "other");
    EXPECT_EQ(step()->offer, 1U);
    view_.providers_rest["other"] = view_.now + seconds(30);
    EXPECT_FALSE(step());
    view_.now += seconds(30);
    EXPECT_EQ(step()->provider, "cloud");
}

TEST_F(PlanTest, WhatMayHaveBeenOrderedIsNeverOrderedAgain) {
    add(creating, "");
    EXPECT_FALSE(step()) << "nothing is known before a listing";
    list();
    EXPECT_FALSE(step()) << "it may show up late";
    view_.now += kUnclearMax;
    EXPECT_FALSE(step()) << "nobody has looked since";
    list();
    ASSERT_EQ(kind(), Kind::end);
    EXPECT_TRUE(step()->has_failed);
    EXPECT_FALSE(step()->counts) << "nothing of the template ran";
    // The order itself took as long as that.
    view_.aside[view_.instances[0].id].ordered_at = view_.now;
    EXPECT_FALSE(step());
}

TEST_F(PlanTest, WhatListsAtOnceIsNotWaitedForSoLong) {
    view_.local = {"cloud"};
    Instance& row = add(creating, "");
    view_.now += kUnderWayMax - Millis(1);
    list();
    EXPECT_FALSE(step()) << "the order may be under way";
    view_.now += Millis(1);
    list();
    EXPECT_EQ(kind(), Kind::end);
    // Who knows its machine needs no time at all.
    row.since[creating] = view_.now;
    row.machine = "m1";
    view_.aside[row.id].missed = kMissedMax;
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_FALSE(step()->counts);
    row.state = starting;
    EXPECT_TRUE(step()->counts) << "it ran, and is not there any more";
}

// Its provider may not know it yet, and have nothing to remove.
TEST_F(PlanTest, ARowDoesNotEndBeforeItsMachineMustHaveShownUp) {
    Instance& row = add(removing);
    view_.pools[0].size = 0;
    view_.aside[row.id].removed_at = view_.now;
    list();
    EXPECT_FALSE(step());
    view_.aside[row.id].was_listed = true;
    EXPECT_EQ(kind(), Kind::end);
    view_.aside[row.id].was_listed = false;
    view_.now += kUnclearMax;
    list();
    EXPECT_EQ(kind(), Kind::end);
}

TEST_F(PlanTest, AMachineThatNobodyStartedIsReplacedAndNobodyToBlame) {
    show(add(creating), Machine::State::made).reason = "it was never started";
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_FALSE(step()->has_failed);
    EXPECT_FALSE(step()->counts);
}

TEST_F(PlanTest, AMachineIsFoundAgainByItsName) {
    const Instance& row = add(creating, "");
    show(row, Machine::State::running, "m7").url = "http://there";
    ASSERT_EQ(kind(), Kind::follow);
    EXPECT_EQ(step()->machine->id, "m7");
    EXPECT_EQ(step()->to, starting);
}

TEST_F(PlanTest, AListingFromBeforeTheLatestDeedSaysNothing) {
    const Instance& row = add(ready);
    view_.aside[row.id].is_employed = true;
    view_.aside[row.id].missed = kMissedMax;
    view_.aside[row.id].acted = 11;
    list();
    EXPECT_FALSE(step());
    view_.listings["cloud"].begun = 12;
    EXPECT_EQ(kind(), Kind::leave);
}

TEST_F(PlanTest, AMachineThatRunsIsExaminedOnceItHasAnAddress) {
    Instance& row = add(starting);
    Machine& machine = show(row, Machine::State::running);
    EXPECT_FALSE(step());
    machine.url = "http://there";
    EXPECT_EQ(kind(), Kind::follow);
    row.url = "http://there";
    EXPECT_EQ(kind(), Kind::examine);
    row.state = warming;
    EXPECT_EQ(kind(), Kind::warm_up);
    row.state = ready;
    EXPECT_EQ(kind(), Kind::employ);
    view_.aside[row.id].is_employed = true;
    EXPECT_FALSE(step());
}

TEST_F(PlanTest, OneThatDialsInNeedsNoAddress) {
    show(add(starting), Machine::State::running);
    view_.dial_in = {"cloud"};
    EXPECT_EQ(kind(), Kind::examine);
}

TEST_F(PlanTest, WhoIsNotReadyInTimeIsRemoved) {
    show(add(pulling), Machine::State::pulling);
    view_.now += minutes(10);
    EXPECT_FALSE(step());
    view_.now += Millis(1);
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_TRUE(step()->has_failed);
    EXPECT_THAT(step()->why, testing::HasSubstr("10 min"));
}

TEST_F(PlanTest, AMachineThatFailedTakesItsInstanceAlong) {
    show(add(starting), Machine::State::failed).reason = "no such image";
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_TRUE(step()->counts);
    EXPECT_THAT(step()->why, testing::HasSubstr("no such image"));
}

TEST_F(PlanTest, OfTooManyTheOneGoesThatCostsLeast) {
    view_.pools[0].size = 2;
    const std::string busy = add(ready, "m1").id;
    const std::string idle = add(ready, "m2").id;
    const std::string young = add(pulling, "m3").id;
    view_.aside[busy] = {.is_employed = true, .jobs = 2};
    view_.aside[idle] = {.is_employed = true};
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_EQ(step()->instance, young);
    view_.instances.pop_back();
    view_.pools[0].size = 1;
    ASSERT_EQ(kind(), Kind::drain);
    EXPECT_EQ(step()->instance, idle);
}

TEST_F(PlanTest, OfIdleOnesTheOneGoesWhoseModelsFewestJobsWant) {
    const std::string wanted = add(ready, "m1").id;
    const std::string forgotten = add(ready, "m2").id;
    const std::string busy = add(ready, "m3").id;
    view_.aside[wanted] = {.is_employed = true, .wanted = 7};
    view_.aside[forgotten] = {.is_employed = true, .wanted = 1};
    view_.aside[busy] = {.is_employed = true, .jobs = 1};
    view_.pools[0].size = 2;
    ASSERT_EQ(kind(), Kind::drain);
    EXPECT_EQ(step()->instance, forgotten);
}

// An offer of each: the first in order gives what nobody asked for.
class WantsTest : public PlanTest {
protected:
    WantsTest() {
        view_.pools[0].offers = {
            {.provider = "cloud", .gpus = {"L40S"}},
            {.provider = "other", .gpus = {"RTX 4090", "H200"}, .region = "eu"},
            {.provider = "any"},
        };
        view_.pools[0].size = 3;
        for (int i = 0; i < 3; ++i) {
            add(requested, "");
        }
    }
    std::vector<std::pair<std::size_t, std::string>> orders() {
        std::vector<std::pair<std::size_t, std::string>> made;
        for (const Step& one : plan(view_)) {
            EXPECT_EQ(one.kind, Kind::create);
            made.emplace_back(one.offer, one.want ? one.want->gpu : "");
        }
        return made;
    }
    using Orders = std::vector<std::pair<std::size_t, std::string>>;
};

TEST_F(WantsTest, OffersThatGiveWhatWaitingJobsNeedAreTriedFirst) {
    EXPECT_EQ(orders(), (Orders{{0, ""}, {0, ""}, {0, ""}}));
    view_.pools[0].wants = {{.gpu = "H200"}, {.gpu = "RTX 4090", .region = "us"}};
    EXPECT_EQ(orders(), (Orders{{1, "H200"}, {2, "RTX 4090"}, {0, ""}})) << "each once";
    view_.pools[0].wants = {{.gpu = "NVIDIA H200", .region = "EU"}};
    EXPECT_EQ(orders(), (Orders{{1, "NVIDIA H200"}, {0, ""}, {0, ""}}));
    view_.pools[0].wants = {{.memory_gb = 100}};
    EXPECT_EQ(plan(view_).at(0).offer, 1U) << "only an H200 has that";
    view_.pools[0].wants = {{.memory_gb = 30}};
    EXPECT_EQ(plan(view_).at(0).offer, 0U) << "an L40S is enough";
}

TEST_F(WantsTest, OneOnItsWayIsEnough) {
    view_.pools[0].wants = {{.gpu = "H200"}};
    Instance& first = view_.instances[0];
    first.state = creating;
    first.offer.gpu = "NVIDIA H200";
    view_.aside[first.id].is_busy = true;
    EXPECT_EQ(orders(), (Orders{{0, ""}, {0, ""}}));
    first.offer.gpu = "NVIDIA L40S";
    EXPECT_EQ(orders(), (Orders{{1, "H200"}, {0, ""}}));
    first.state = requested;
    view_.aside[first.id].want = view_.pools[0].wants[0];
    EXPECT_EQ(orders(), (Orders{{0, ""}, {0, ""}})) << "it is just being ordered";
    first.state = creating;
    view_.aside[first.id].want.reset();
    view_.leaving = {first.id};
    first.offer.gpu = "NVIDIA H200";
    EXPECT_TRUE(std::ranges::any_of(plan(view_), [](const Step& one) {
        return one.kind == Kind::create && one.want && one.want->gpu == "H200";
    })) << "one that leaves is none";
}

TEST_F(WantsTest, WhatIsNotToBeHadNowHoldsUpNobody) {
    view_.pools[0].wants = {{.gpu = "H200"}};
    const auto rest = [this](std::size_t place) {
        view_.wants_rest[offer_key("gpu", place, view_.pools[0].wants[0])] =
            view_.now + seconds(30);
    };
    rest(1);
    EXPECT_EQ(orders().at(0), std::pair(std::size_t{2}, std::string("H200"))) << "the next one";
    rest(2);
    EXPECT_EQ(orders(), (Orders{{0, ""}, {0, ""}, {0, ""}}));
    view_.now += seconds(30);
    EXPECT_EQ(orders().at(0).first, 1U);
    view_.offers_rest[{"gpu", 1}] = view_.now + seconds(30);
    EXPECT_EQ(orders().at(0).first, 1U) << "that it has no RTX 4090 says nothing";
    view_.pools[0].wants = {{.gpu = "H200", .region = "us"}, {.gpu = "TPU"}};
    EXPECT_EQ(orders(), (Orders{{2, "H200"}, {2, "TPU"}, {0, ""}}));
}

TEST_F(PlanTest, WhatAnOperatorWantsGoneIsReplaced) {
    const Instance& row = add(ready);
    view_.aside[row.id].is_employed = true;
    view_.leaving = {row.id};
    const auto steps = plan(view_);
    ASSERT_THAT(steps, SizeIs(2));
    EXPECT_EQ(steps[0].kind, Kind::request);
    EXPECT_EQ(steps[1].kind, Kind::drain);
}

TEST_F(PlanTest, AMachineThatIsTakenBackIsDrained) {
    Instance& row = add(ready);
    row.url = "http://there";
    view_.aside[row.id].is_employed = true;
    Machine& machine = show(row, Machine::State::running);
    machine.url = row.url;
    machine.reclaimed_at = view_.now + seconds(30);
    ASSERT_EQ(kind(), Kind::drain);
    EXPECT_TRUE(step()->machine->reclaimed_at);
}

TEST_F(PlanTest, AWorkerThatIsSilentForLongIsReplacedThoughItsMachineRuns) {
    Instance& row = add(ready);
    row.url = "http://there";
    show(row, Machine::State::running).url = row.url;
    view_.aside[row.id] = {.is_employed = true, .silent_since = view_.now};
    view_.now += kInquireAfter - Millis(1);
    EXPECT_FALSE(step());
    view_.now += Millis(1);
    EXPECT_EQ(kind(), Kind::inquire) << "its agent may know why";
    view_.now += kSilentMax - kInquireAfter - Millis(1);
    EXPECT_EQ(kind(), Kind::inquire);
    view_.now += Millis(1);
    ASSERT_EQ(kind(), Kind::leave);
    EXPECT_TRUE(step()->has_failed);
}

TEST_F(PlanTest, ARowEndsWhenAListingShowsItsMachineNoMore) {
    Instance& row = add(removing);
    view_.pools[0].size = 0;
    EXPECT_EQ(kind(), Kind::remove) << "nobody waits for a listing";
    view_.aside[row.id].removed_at = view_.now;
    view_.aside[row.id].was_listed = true;
    show(row, Machine::State::stopping);
    EXPECT_FALSE(step());
    view_.now += kTellAgain;
    EXPECT_EQ(kind(), Kind::remove) << "it was forgotten";
    view_.listings["cloud"].machines.clear();
    ASSERT_EQ(kind(), Kind::end);
    EXPECT_FALSE(step()->has_failed);
    row.has_failed = true;
    EXPECT_TRUE(step()->has_failed);
}

TEST_F(PlanTest, StraysAreRemovedOnceTheyAreOld) {
    view_.pools.clear();
    Instance unknown;
    unknown.id = "0123456789ab";
    unknown.fleet = "main";
    Machine& machine = show(unknown, Machine::State::running);
    view_.listings["cloud"].known.clear();
    view_.now += kStrayAge - Millis(1);
    EXPECT_FALSE(step());
    view_.now += Millis(1);
    EXPECT_EQ(kind(), Kind::remove_stray);
    view_.listings["cloud"].known = {unknown.id};
    EXPECT_FALSE(step()) << "another leader's";
    view_.listings["cloud"].known.clear();
    for (const char* name : {"comfyd-other-0123456789ab", "comfyd-main-x-0123456789ab", "db"}) {
        machine.name = name;
        EXPECT_FALSE(step()) << name;
    }
}

TEST_F(PlanTest, AStrayWithoutAnAgeIsAsOldAsItIsKnown) {
    view_.pools.clear();
    Instance unknown;
    unknown.id = "0123456789ab";
    unknown.fleet = "main";
    show(unknown, Machine::State::running).made_at.reset();
    view_.listings["cloud"].known.clear();
    EXPECT_FALSE(step());
    view_.listings["cloud"].first_seen["m1"] = view_.now - kStrayAge;
    EXPECT_EQ(kind(), Kind::remove_stray);
}

TEST_F(PlanTest, OfTwoUnderOneNameTheOtherIsAStray) {
    Instance& row = add(ready);
    row.url = "http://there";
    view_.aside[row.id].is_employed = true;
    show(row, Machine::State::running, "m1").url = row.url;
    show(row, Machine::State::running, "m2").made_at = view_.now - kStrayAge;
    ASSERT_EQ(kind(), Kind::remove_stray);
    EXPECT_EQ(step()->machine->id, "m2");
}

TEST_F(PlanTest, WhoIsBusyOrRestsIsLeftAlone) {
    const Instance& row = add(removing);
    view_.pools[0].size = 0;
    view_.aside[row.id].is_busy = true;
    EXPECT_FALSE(step());
    view_.aside[row.id] = {.rests_until = view_.now + seconds(1)};
    EXPECT_FALSE(step());
}

TEST_F(PlanTest, AScaledPoolGivesUpIdleMachinesAlone) {
    PoolGoal& pool = view_.pools[0];
    pool.size = 0;
    pool.is_scaled = true;
    pool.why = "nothing waits";
    const std::string busy = add(ready, "m1").id;
    const std::string idle = add(ready, "m2").id;
    const std::string best_effort = add(ready, "m3").id;
    for (const Instance& instance : view_.instances) {
        view_.aside[instance.id].is_employed = true;
    }
    view_.aside[busy].jobs = 1;
    view_.aside[best_effort].jobs = view_.aside[best_effort].best_effort = 1;
    const auto steps = plan(view_);
    ASSERT_THAT(steps, SizeIs(2));
    for (const Step& step : steps) {
        EXPECT_EQ(step.kind, Kind::drain);
        EXPECT_NE(step.instance, busy);
        EXPECT_EQ(step.why, "nothing waits");
    }
    pool.drains = true;
    EXPECT_THAT(plan(view_), SizeIs(3)) << "without money all end what they do and go";
}

TEST_F(PlanTest, AScaledPoolTriesTheCheapestOfferFirst) {
    PoolGoal& pool = view_.pools[0];
    pool.is_scaled = true;
    pool.order = {1, 0};
    add(requested, "");
    EXPECT_EQ(step()->offer, 1U);
    view_.offers_rest[{"gpu", 1}] = view_.now + minutes(1);
    EXPECT_EQ(step()->offer, 0U);
}

TEST_F(PlanTest, OnDemandStandsInForSpotAfterAWhile) {
    PoolGoal& pool = view_.pools[0];
    pool.is_scaled = true;
    pool.spot_wait = seconds(60);
    pool.offers[0].market = Market::spot;
    add(requested, "");
    EXPECT_EQ(step()->offer, 0U);
    view_.offers_rest[{"gpu", 0}] = view_.now + minutes(10);
    EXPECT_FALSE(step()) << "it may be there soon";
    view_.now += seconds(60);
    EXPECT_EQ(step()->offer, 1U);
    view_.now -= seconds(60);
    pool.offers[0].market = Market::on_demand;
    EXPECT_EQ(step()->offer, 1U) << "nobody asked for spot";
}

TEST_F(PlanTest, AScaledPoolGetsNothingElseInPlaceOfWhatIsWanted) {
    PoolGoal& pool = view_.pools[0];
    pool.size = 2;
    pool.is_scaled = true;
    pool.offers[0].gpus = {"H200"};
    pool.offers[1].gpus = {"RTX 4090"};
    pool.wants = {{.gpu = "H200"}};
    view_.wants_rest[offer_key("gpu", 0, pool.wants[0])] = view_.now + minutes(10);
    add(requested, "");
    add(requested, "");
    const auto steps = plan(view_);
    ASSERT_THAT(steps, SizeIs(1)) << "one waits for the H200, the other is for other jobs";
    EXPECT_EQ(steps[0].instance, view_.instances[1].id);
}

}  // namespace
}  // namespace comfyd::fleet
