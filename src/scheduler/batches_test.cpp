#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "scheduler/predictor.hpp"
#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;

ProfilePtr mergeable(double run_s = 1) {
    auto made = std::make_shared<Profile>(*profile("x", run_s, 6 * kGiB));
    made->can_be_merged = true;
    return made;
}

WorkerState merging_worker(const std::string& id, const std::string& gpu = "") {
    auto state = worker(id);
    state.merges = true;
    state.gpu = gpu;
    state.vram_bytes = 140 * kGiB;
    return state;
}

class BatchesTest : public ::testing::Test {
protected:
    void make(int merge_max, Millis gather = Millis(0)) {
        Options options;
        options.merge_max = merge_max;
        options.gather = gather;
        scheduler = std::make_unique<Scheduler>(learned, options);
    }
    void add(int count, Time when, int priority = 5) {
        for (int i = 0; i < count; ++i) {
            scheduler->add(job_id(++jobs), keys(x, when, priority));
        }
    }
    // Merged runs of so many take this long, as was measured.
    void teach(int together, double seconds) {
        RunReport report{*x, "A", "w", seconds, {}};
        report.jobs = together;
        for (int i = 0; i < 3; ++i) {
            learned.learn(report);
        }
    }
    void finish(const Decision& decision, Time now) {
        scheduler->finished(decision.job, 1, now);
        for (const auto& other : decision.batched) {
            scheduler->finished(other.job, 1, now);
        }
    }

    const ProfilePtr x = mergeable();
    Predictor learned;
    std::unique_ptr<Scheduler> scheduler;
    std::uint64_t jobs = 0;
};

// Four processes on one GPU, and what each tells of itself after lone runs and merged ones.
TEST_F(BatchesTest, StayAsManyWhateverRanBefore) {
    make(8);
    scheduler->set_worker(merging_worker("w", "shared"));
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        RunReport report{*x, "A", "w", 1, {}};
        report.jobs = random() % 2 == 0 ? 1 : 2 + static_cast<int>(random() % 7);
        report.seconds = 1 + 0.2 * (report.jobs - 1);
        report.peak_vram_bytes = (40 + 5 * static_cast<std::uint64_t>(report.jobs)) * kGiB / 10;
        learned.learn(report);
        add(8, at(round));
        const auto decision = scheduler->next(at(round));
        ASSERT_TRUE(decision);
        EXPECT_EQ(decision->batched.size(), 7U) << "after " << round << " runs";
        finish(*decision, at(round));
    }
    EXPECT_LT(learned.vram_bytes(*x, "A"), 5 * kGiB);
}

TEST_F(BatchesTest, AreNoMoreThanPay) {
    make(8);
    scheduler->set_worker(merging_worker("w"));
    const auto batched = [this] {
        add(8, at(0));
        const auto decision = scheduler->next(at(0));
        const std::size_t count = decision->batched.size();
        finish(*decision, at(0));
        while (auto rest = scheduler->next(at(0))) {
            finish(*rest, at(0));
        }
        return count;
    };
    learned.learn({*x, "A", "w", 1, {}});
    EXPECT_EQ(batched(), 7U) << "nothing is known yet";
    teach(2, 1.2);
    teach(4, 1.6);
    teach(8, 2.4);
    EXPECT_EQ(batched(), 7U) << "each brings more";
    for (int i = 0; i < 9; ++i) {
        teach(8, 3.2);
    }
    EXPECT_EQ(batched(), 3U) << "the GPU is full with four";
    for (int i = 0; i < 9; ++i) {
        teach(2, 1.9);
        teach(4, 3.8);
    }
    EXPECT_EQ(batched(), 0U) << "as long together as one after the other";
}

TEST_F(BatchesTest, AreSharedByGpusAtTheEnd) {
    make(8);
    for (const char* id : {"a", "b", "c"}) {
        scheduler->set_worker(merging_worker(id));
        scheduler->set_models(id, x->models);
    }
    add(5, at(0));
    std::vector<std::size_t> sizes;
    while (auto decision = scheduler->next(at(0))) {
        sizes.push_back(1 + decision->batched.size());
    }
    EXPECT_THAT(sizes, ::testing::ElementsAre(2U, 2U, 1U));
}

TEST_F(BatchesTest, AreSharedWithAWorkerThatIsFreeSoon) {
    make(8);
    for (const char* id : {"a", "b"}) {
        scheduler->set_worker(merging_worker(id));
        scheduler->set_models(id, x->models);
    }
    learned.learn({*x, "A", "w", 1, {}});
    teach(8, 2.4);
    add(16, at(0));
    std::vector<Decision> first{*scheduler->next(at(0)), *scheduler->next(at(0))};
    EXPECT_EQ(first[0].batched.size() + first[1].batched.size(), 14U);
    add(8, at(1));
    finish(first[0], at(2.3));
    EXPECT_EQ(scheduler->next(at(2.3))->batched.size(), 3U) << "the other one takes four";
    finish(first[1], at(2.4));
    EXPECT_EQ(scheduler->next(at(2.4))->batched.size(), 3U);
}

TEST_F(BatchesTest, WorkersOnOneGpuDoNotShareTheLastOnes) {
    make(8);
    for (const char* id : {"a", "b"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    add(8, at(0));
    EXPECT_EQ(scheduler->next(at(0))->batched.size(), 7U) << "together they would take longer";
}

TEST_F(BatchesTest, ABurstGathersAndALoneJobDoesNotWait) {
    make(8, Millis(15));
    for (const char* id : {"a", "b", "c"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    add(1, at(0));
    ASSERT_TRUE(scheduler->next(at(0))) << "nobody knows of others yet";
    add(1, at(0.002));
    EXPECT_FALSE(scheduler->next(at(0.002)));
    EXPECT_EQ(scheduler->wake_at(), at(0.017));
    add(2, at(0.010));
    EXPECT_FALSE(scheduler->next(at(0.010)));
    auto decision = scheduler->next(at(0.017));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->batched.size(), 2U);
    finish(*decision, at(1));
    add(1, at(2));
    EXPECT_TRUE(scheduler->next(at(2))) << "again a lone one";
}

TEST_F(BatchesTest, NobodyWaitsForATimeFromBeforeTheClockWasSetBack) {
    make(8, Millis(15));
    for (const char* id : {"a", "b", "c"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    add(1, at(0));
    ASSERT_TRUE(scheduler->next(at(0)));
    add(1, at(0.002));
    EXPECT_FALSE(scheduler->next(at(0.002))) << "it gathers";
    const auto decision = scheduler->next(at(-300));
    ASSERT_TRUE(decision);
    EXPECT_TRUE(decision->batched.empty());
}

TEST_F(BatchesTest, GatheringBeginsWhenTheyComeIntoTheQueue) {
    make(8, Millis(15));
    for (const char* id : {"a", "b"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    add(1, at(0));
    ASSERT_TRUE(scheduler->next(at(0)));
    add(1, at(0.002));  // stored by 12 ms
    EXPECT_FALSE(scheduler->next(at(0.012)));
    add(3, at(0.004));
    EXPECT_FALSE(scheduler->next(at(0.024)));
    EXPECT_EQ(scheduler->wake_at(), at(0.027));
    EXPECT_EQ(scheduler->next(at(0.027))->batched.size(), 3U);
}

TEST_F(BatchesTest, GatheringEndsWhenThereAreEnoughOrOthersWait) {
    make(4, Millis(15));
    for (const char* id : {"a", "b", "c", "d"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    add(1, at(0));
    ASSERT_TRUE(scheduler->next(at(0)));
    add(4, at(0.001));
    EXPECT_EQ(scheduler->next(at(0.001))->batched.size(), 3U) << "as many as fit";
    add(1, at(0.002));
    EXPECT_FALSE(scheduler->next(at(0.002)));
    scheduler->add(job_id(100), keys(profile("y"), at(0.003), 1));
    EXPECT_TRUE(scheduler->next(at(0.003))->job != job_id(100)) << "it is not let by";
}

TEST_F(BatchesTest, TheEndOfAMergedRunIsKnown) {
    make(8);
    scheduler->set_worker(merging_worker("w"));
    scheduler->set_models("w", x->models);
    learned.learn({*x, "A", "w", 1, {}});
    teach(8, 4);
    add(24, at(0));
    ASSERT_EQ(scheduler->next(at(0))->batched.size(), 7U);
    // The last of 16 that wait: what runs, and one run of eight before its own.
    EXPECT_NEAR(*scheduler->expected_wait(job_id(24), at(1)), 3 + 7.5, 0.5);
    EXPECT_GT(*scheduler->expected_wait(job_id(9), at(6)), 0.3) << "late, but not at its end yet";
}

TEST_F(BatchesTest, RunsOnOneGpuTakeLonger) {
    make(1);
    for (const char* id : {"a", "b", "c"}) {
        scheduler->set_worker(merging_worker(id, "shared"));
        scheduler->set_models(id, x->models);
    }
    for (int i = 0; i < 3; ++i) {
        learned.learn({*x, "A", "w", 10, {}});
    }
    add(4, at(0));
    ASSERT_NEAR(scheduler->next(at(0))->numbers.run_s, 10, 1e-3);
    ASSERT_NEAR(scheduler->next(at(0))->numbers.run_s, 20, 1e-3);
    const auto third = scheduler->next(at(0));
    ASSERT_NEAR(third->numbers.run_s, 30, 1e-3);
    EXPECT_NEAR(*scheduler->expected_wait(job_id(4), at(0)), 30, 1);
    EXPECT_NEAR(*scheduler->expected_wait(job_id(4), at(15)), 15, 1);
    EXPECT_NEAR(scheduler->gpu_part(third->job, at(15)), 1.0 / 3, 1e-9);
    scheduler->finished(job_id(1), 1, at(15));
    ASSERT_TRUE(scheduler->next(at(15)));
    EXPECT_NEAR(scheduler->gpu_part(third->job, at(30)), 1.0 / 3, 1e-9);
    EXPECT_EQ(scheduler->sharing("a"), 3);
}

TEST_F(BatchesTest, FoundAgainCountAsOneRun) {
    make(8);
    auto state = merging_worker("w", "shared");
    state.vram_bytes = 24 * kGiB;
    scheduler->set_worker(state);
    state.id = "other";
    scheduler->set_worker(state);
    scheduler->set_models("other", x->models);
    std::vector<Decision::Batched> batched;
    for (std::uint64_t i = 1; i < 4; ++i) {
        batched.push_back({job_id(i), keys(x, at(0))});
    }
    scheduler->running(job_id(0), "w", keys(x, at(0)), at(0), batched);
    EXPECT_EQ(scheduler->running_count(), 4U);
    jobs = 10;
    add(1, at(0));
    const auto decision = scheduler->next(at(0));
    ASSERT_TRUE(decision);
    // 6 GiB and three times what is not the model: 2.
    EXPECT_EQ(decision->numbers.vram_free, 12 * kGiB);
    for (std::uint64_t i = 0; i < 4; ++i) {
        scheduler->finished(job_id(i), 1, at(1));
    }
    EXPECT_EQ(scheduler->running_count(), 1U);
}

}  // namespace
}  // namespace comfyd::scheduler
