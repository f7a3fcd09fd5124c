// Jobs whose results a worker still has.
#include <gtest/gtest.h>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;

class ResultsTest : public ::testing::Test {
protected:
    // A job that does this, placed and run to its end; where.
    std::string run(std::uint64_t content, ProfilePtr of, double when) {
        auto made = keys(std::move(of), at(when));
        made.content = content;
        scheduler.add(job_id(++jobs), made);
        const auto decision = scheduler.next(at(when));
        if (!decision) {
            return "";
        }
        scheduler.finished(decision->job, 1, at(when));
        return decision->worker;
    }
    void add_workers(int count) {
        for (int i = 0; i < count; ++i) {
            scheduler.set_worker(worker("w" + std::to_string(i)));
            scheduler.set_models("w" + std::to_string(i), profile("x")->models);
        }
    }

    TableEstimates estimates;
    Scheduler scheduler{estimates};
    std::uint64_t jobs = 0;
};

TEST_F(ResultsTest, AnEqualJobGoesWhereItsResultsAre) {
    add_workers(20);
    const ProfilePtr x = profile("x");
    auto other = std::make_shared<Profile>(*x);
    other->shape = "another";
    const std::string first = run(1, x, 0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_NE(run(10 + i, other, 1), first);
    }
    EXPECT_EQ(run(1, x, 2), first);
    scheduler.forget_models(first);
    scheduler.set_models(first, x->models);
    EXPECT_NE(run(1, x, 3), first) << "it was restarted";
}

TEST_F(ResultsTest, AWorkerThatTakesNoJobsIsNotWaitedFor) {
    add_workers(2);
    const std::string first = run(1, profile("x"), 0);
    auto draining = worker(first);
    draining.available = false;
    scheduler.set_worker(draining);
    EXPECT_EQ(run(1, profile("x"), 1), first == "w0" ? "w1" : "w0");
}

TEST_F(ResultsTest, ANearlyEqualOneGoesWhereMostOfItIs) {
    add_workers(20);
    const ProfilePtr x = profile("x");
    const std::string first = run(1, x, 0);
    EXPECT_EQ(run(2, x, 1), first);
    EXPECT_EQ(run(0, x, 1), first);
}

TEST_F(ResultsTest, OnlyTheLatestAreKept) {
    scheduler.set_worker(worker("w0"));
    for (std::uint64_t i = 1; i < 10; ++i) {
        EXPECT_EQ(run(i, profile(""), 0), "w0");
    }
    scheduler.set_worker(worker("w1"));
    EXPECT_EQ(run(9, profile(""), 1), "w0");
    auto other = std::make_shared<Profile>(*profile(""));
    other->shape = "another";
    EXPECT_EQ(run(1, other, 1), "w1") << "free for longer, and w0 has forgotten the first";
}

TEST_F(ResultsTest, AWorkerThatIsFreeSoonIsWaitedFor) {
    add_workers(2);
    const ProfilePtr x = profile("x", 10);
    auto made = keys(x, at(0));
    made.content = 7;
    scheduler.add(job_id(1), made);
    const std::string first = scheduler.next(at(0))->worker;
    scheduler.add(job_id(2), made);
    const auto early = scheduler.next(at(1));
    ASSERT_TRUE(early) << "nine seconds are no saving";
    EXPECT_NE(early->worker, first);
    scheduler.finished(job_id(2), 1, at(7));
    made.content = 7;
    scheduler.add(job_id(3), made);
    EXPECT_EQ(scheduler.next(at(8))->worker, early->worker) << "the latest has them too";
}

TEST_F(ResultsTest, TheWaitEndsWithTheRunAlsoOfAJobWithoutModels) {
    for (const char* id : {"w0", "w1"}) {
        scheduler.set_worker(worker(id));
    }
    auto plain = std::make_shared<Profile>(*profile("x", 1'000));
    plain->models.clear();
    auto made = keys(plain, at(0));
    made.content = 7;
    scheduler.add(job_id(1), made);
    const std::string first = scheduler.next(at(0))->worker;
    made.queued_at = at(900);
    scheduler.add(job_id(2), made);
    EXPECT_FALSE(scheduler.next(at(901)));
    EXPECT_EQ(scheduler.explain(job_id(2), at(901))->waits_for, first);
    scheduler.finished(job_id(1), 1, at(902));
    const auto decision = scheduler.next(at(902));
    ASSERT_TRUE(decision) << "it ended long before it was expected to";
    EXPECT_EQ(decision->worker, first);
}

TEST_F(ResultsTest, TheWaitEndsWithTheRun) {
    add_workers(2);
    const ProfilePtr x = profile("x", 10);
    auto made = keys(x, at(0));
    made.content = 7;
    scheduler.add(job_id(1), made);
    const std::string first = scheduler.next(at(0))->worker;
    made.queued_at = at(7);
    scheduler.add(job_id(2), made);
    EXPECT_FALSE(scheduler.next(at(8)));
    EXPECT_EQ(scheduler.explain(job_id(2), at(8))->waits_for, first);
    scheduler.finished(job_id(1), 1, at(9));
    EXPECT_EQ(scheduler.next(at(9))->worker, first);
}

TEST_F(ResultsTest, NobodyWaitsForLongerThanTheRunThatIsSaved) {
    add_workers(2);
    const ProfilePtr x = profile("x", 10);
    auto made = keys(x, at(0));
    made.content = 7;
    scheduler.add(job_id(1), made);
    ASSERT_TRUE(scheduler.next(at(0)));
    made.queued_at = at(-2);
    scheduler.add(job_id(2), made);
    EXPECT_TRUE(scheduler.next(at(9))) << "it has waited for eleven seconds";
}

}  // namespace
}  // namespace comfyd::scheduler
