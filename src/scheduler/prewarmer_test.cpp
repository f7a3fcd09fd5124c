#include "scheduler/prewarmer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class Prewarming : public ::testing::Test {
protected:
    // One every `every_s` seconds, for twenty minutes up to `now_s`.
    void come(const ProfilePtr& profile, double every_s, double now_s = 1'200) {
        for (double ago_s = 1'200; ago_s >= 0; ago_s -= every_s) {
            prewarmer_.arrived(profile, at(now_s - ago_s));
        }
    }
    // "worker model" of each order.
    std::vector<std::string> look(double now_s = 1'200) {
        std::vector<std::string> orders;
        for (const auto& order : prewarmer_.look(scheduler_, at(now_s), can_load_)) {
            orders.push_back(order.worker + " " + order.profile->models.front().name.substr(11));
        }
        return orders;
    }
    void run_once(const ProfilePtr& profile, double from_s, double to_s) {
        scheduler_.add(job_id(++jobs_), keys(profile, at(from_s)));
        ASSERT_TRUE(scheduler_.next(at(from_s)));
        scheduler_.finished(job_id(jobs_), to_s - from_s, at(to_s));
    }

    TableEstimates estimates_;
    Scheduler scheduler_{estimates_};
    Prewarmer prewarmer_;
    Prewarmer::CanLoad can_load_;
    std::uint64_t jobs_ = 0;
    const ProfilePtr often_ = profile("often");
    const ProfilePtr seldom_ = profile("seldom");
};

TEST_F(Prewarming, AnIdleWorkerLoadsWhatOftenComes) {
    scheduler_.set_worker(worker("w1"));
    come(often_, 30);
    EXPECT_THAT(look(), ElementsAre("w1 often"));
    EXPECT_THAT(look(1'201), IsEmpty()) << "not again so soon";
    prewarmer_.ended("w1", false, at(1'220));
    EXPECT_THAT(look(1'220), IsEmpty()) << "it is there";
    // The scheduler knows it: nothing is loaded for the next job.
    scheduler_.add(job_id(1), keys(often_, at(1'221)));
    const auto decision = scheduler_.next(at(1'221));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->numbers.load_s, 0);
}

TEST_F(Prewarming, NothingIsLoadedForWhatSeldomComes) {
    scheduler_.set_worker(worker("w1"));
    prewarmer_.arrived(seldom_, at(0));
    prewarmer_.arrived(profile(""), at(1));
    EXPECT_THAT(look(2), IsEmpty()) << "less than one job in ten minutes, or no models at all";
}

TEST_F(Prewarming, AWorkerIdlesAsLongAsTheLoadTakesBeforeItLoads) {
    scheduler_.set_worker(worker("w1"));
    come(often_, 30);
    run_once(seldom_, 1'170, 1'190);
    EXPECT_THAT(look(1'200), IsEmpty());
    EXPECT_THAT(look(1'210), ElementsAre("w1 often"));
}

TEST_F(Prewarming, WhatIsWantedMoreStaysAndASecondWorkerHasWhatIsWantedNext) {
    scheduler_.set_worker(worker("w1"));
    come(often_, 10);
    come(seldom_, 120);
    EXPECT_THAT(look(), ElementsAre("w1 often"));
    prewarmer_.ended("w1", false, at(1'220));
    EXPECT_THAT(look(1'220), IsEmpty());
    scheduler_.set_worker(worker("w2"));
    EXPECT_THAT(look(1'230), ElementsAre("w2 seldom"));
}

TEST_F(Prewarming, AFurtherWorkerLoadsTheSameWhereOneIsOftenNotEnough) {
    const ProfilePtr longer = profile("longer", 60);
    scheduler_.set_worker(worker("w1"));
    scheduler_.set_worker(worker("w2"));
    come(longer, 30);
    EXPECT_THAT(look(), UnorderedElementsAre("w1 longer", "w2 longer"));
}

TEST_F(Prewarming, OneOfManyWorkersIsEnoughForShortJobs) {
    for (const char* id : {"w1", "w2", "w3"}) {
        scheduler_.set_worker(worker(id));
    }
    come(often_, 60);
    EXPECT_EQ(look().size(), 1U);
}

TEST_F(Prewarming, WhatHasRoomBesideIsNoLoss) {
    WorkerState roomy = worker("w1");
    roomy.model_memory_bytes = 8 * kGiB;
    scheduler_.set_worker(roomy);
    come(often_, 10);
    come(seldom_, 100);
    EXPECT_THAT(look(), UnorderedElementsAre("w1 often"));
    prewarmer_.ended("w1", false, at(1'220));
    EXPECT_THAT(look(1'220), ElementsAre("w1 seldom"));
    prewarmer_.ended("w1", false, at(1'240));
    EXPECT_THAT(look(1'240), IsEmpty());
}

TEST_F(Prewarming, AtTheHourAtWhichJobsCameOnPastDays) {
    scheduler_.set_worker(worker("w1"));
    constexpr double kHour = 3'600;
    const double first = 24 * kHour - 800;  // kStart is 22:13:20, so this is 22:00 of the next day
    for (int day = 0; day < 3; ++day) {
        for (int job = 0; job < 30; ++job) {
            prewarmer_.arrived(often_, at(first + day * 24 * kHour + job * 60));
        }
    }
    EXPECT_THAT(look(first + 2 * 24 * kHour + 12 * kHour), IsEmpty()) << "not at ten";
    EXPECT_THAT(look(first + 3 * 24 * kHour - 900), IsEmpty()) << "not a quarter of an hour before";
    EXPECT_THAT(look(first + 3 * 24 * kHour - 500), ElementsAre("w1 often"));
}

TEST_F(Prewarming, WaitingJobsCountAsJobsThatWillCome) {
    scheduler_.set_worker(worker("w1"));
    scheduler_.set_tenant("a", {.running_max = 1});
    const ProfilePtr plain = profile("");
    scheduler_.add(job_id(1), keys(plain, at(0)));
    ASSERT_TRUE(scheduler_.next(at(0)));  // the tenant may have no more
    WorkerState other = worker("w2");
    scheduler_.set_worker(other);
    for (std::uint64_t job = 2; job < 6; ++job) {
        scheduler_.add(job_id(job), keys(seldom_, at(1)));
    }
    EXPECT_FALSE(scheduler_.next(at(2)));
    prewarmer_.arrived(seldom_, at(3));
    EXPECT_THAT(look(4), ElementsAre("w2 seldom"));
}

// A thread waits for each look.
TEST_F(Prewarming, AtMostEightWorkersBeginAtOneLook) {
    const ProfilePtr longer = profile("longer", 600);
    for (int i = 0; i < 20; ++i) {
        scheduler_.set_worker(worker("w" + std::to_string(i)));
    }
    come(longer, 10);
    EXPECT_EQ(look(1'200).size(), 8U);
    EXPECT_EQ(look(1'210).size(), 8U);
    EXPECT_EQ(look(1'220).size(), 4U);
}

TEST_F(Prewarming, APinnedModelIsLoadedWhereverAWorkerIdles) {
    scheduler_.set_worker(worker("w1"));
    come(often_, 10);
    prewarmer_.arrived(seldom_, at(0));
    prewarmer_.pin({"seldom"});
    EXPECT_THAT(look(), ElementsAre("w1 seldom"));
    scheduler_.set_worker(worker("w2"));
    EXPECT_THAT(look(1'210), ElementsAre("w2 often")) << "one with the pinned one is enough";
}

TEST_F(Prewarming, AWorkerThatFailedGetsNothingForTenMinutesAndOneThatCannotNever) {
    scheduler_.set_worker(worker("w1"));
    come(often_, 30);
    can_load_ = [](const std::string&) { return false; };
    EXPECT_THAT(look(), IsEmpty());
    can_load_ = {};
    EXPECT_THAT(look(1'210), ElementsAre("w1 often"));
    scheduler_.forget_models("w1");
    prewarmer_.ended("w1", true, at(1'220));
    come(often_, 30, 3'000);
    EXPECT_THAT(look(1'700), IsEmpty());
    EXPECT_THAT(look(1'821), ElementsAre("w1 often"));
}

TEST_F(Prewarming, WorkersThatShareAGpuOrAreNotThereLoadNothing) {
    WorkerState first = worker("w1");
    WorkerState second = worker("w2");
    first.gpu = second.gpu = "gpu";
    WorkerState down = worker("w3");
    down.available = false;
    for (const WorkerState& state : {first, second, down}) {
        scheduler_.set_worker(state);
    }
    come(often_, 10);
    EXPECT_THAT(look(), IsEmpty());
}

// Of workers that are alike the one that loads is chosen last.
TEST_F(Prewarming, AJobThatNeedsOtherModelsGoesToAWorkerThatLoadsNothing) {
    scheduler_.set_worker(worker("w1"));
    scheduler_.set_worker(worker("w2"));
    come(often_, 60);
    ASSERT_THAT(look(), ElementsAre("w1 often"));
    scheduler_.add(job_id(1), keys(seldom_, at(1'201)));
    const auto decision = scheduler_.next(at(1'201));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->worker, "w2");
}

TEST(KindRates, KindsThatCameLongestAgoAreForgotten) {
    KindRates rates;
    for (int kind = 0; kind < 300; ++kind) {
        rates.arrived(profile("m" + std::to_string(kind)), at(kind));
    }
    EXPECT_EQ(rates.wanted(at(300)).size(), KindRates::kKindsMax);
    EXPECT_FALSE(rates.knows(kind_of(*profile("m0"))));
    EXPECT_TRUE(rates.knows(kind_of(*profile("m299"))));
    rates.forget(kind_of(*profile("m299")));
    EXPECT_FALSE(rates.knows(kind_of(*profile("m299"))));
}

}  // namespace
}  // namespace comfyd::scheduler
