#include "scheduler/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SchedulerTest : public ::testing::Test {
protected:
    // Places one job after the other on the only worker.
    std::vector<JobId> drain(Time now) {
        std::vector<JobId> order;
        while (auto decision = scheduler.next(now)) {
            order.push_back(decision->job);
            scheduler.finished(
                decision->job, decision->numbers.load_s + decision->numbers.run_s, now
            );
        }
        return order;
    }

    TableEstimates estimates;
    Scheduler scheduler{estimates};
};

// A lane is where the jobs of one kind and one owner wait. Its place is used again when it is
// empty.
TEST_F(SchedulerTest, AJobInThePlaceOfOneThatLeftIsNotForgotten) {
    auto unable = worker("w");
    unable.abilities.clear();
    unable.slots = 4;
    unable.can_run = [](const Requirement&) { return false; };
    scheduler.set_worker(unable);
    const ProfilePtr plain = profile("");
    scheduler.add(job_id(1), keys(plain, at(0), 5, "a"));
    scheduler.add(job_id(2), keys(plain, at(0), 5, "b"));
    EXPECT_FALSE(scheduler.next(at(0)));
    scheduler.remove(job_id(1));
    scheduler.add(job_id(3), keys(plain, at(1), 1, "a"));
    EXPECT_FALSE(scheduler.next(at(1)));
    unable.can_run = nullptr;
    scheduler.set_worker(unable);
    EXPECT_THAT(drain(at(2)), ElementsAre(job_id(2), job_id(3)));
}

TEST_F(SchedulerTest, ClassThenPriorityThenAge) {
    scheduler.set_worker(worker("w"));
    const ProfilePtr plain = profile("");
    scheduler.add(job_id(1), keys(plain, at(0), 1));
    scheduler.add(job_id(2), keys(plain, at(1), 5));
    scheduler.add(job_id(3), keys(plain, at(2), 5));
    scheduler.add(job_id(4), keys(plain, at(3), 7));
    scheduler.add(job_id(5), keys(plain, at(4), 8));
    auto best_effort = keys(plain, at(0), 10);
    best_effort.batch = true;
    scheduler.add(job_id(6), best_effort);
    EXPECT_EQ(scheduler.position(job_id(1), at(5)), 5U);
    EXPECT_EQ(scheduler.position(job_id(6), at(5)), 6U);
    EXPECT_THAT(
        drain(at(5)), ElementsAre(job_id(5), job_id(4), job_id(2), job_id(3), job_id(1), job_id(6))
    );
}

TEST_F(SchedulerTest, InsideAClassAStepOfPriorityIsWorthOneTarget) {
    scheduler.set_worker(worker("w"));
    const ProfilePtr plain = profile("");
    scheduler.add(job_id(1), keys(plain, at(0), 5));
    scheduler.add(job_id(2), keys(plain, at(119), 6));
    scheduler.add(job_id(3), keys(plain, at(121), 6));
    EXPECT_THAT(drain(at(122)), ElementsAre(job_id(2), job_id(1), job_id(3)));
}

TEST_F(SchedulerTest, AJobThatNobodyCanRunDoesNotBlockOthers) {
    auto only_b = worker("w");
    only_b.can_run = [](const Requirement& requirement) { return requirement.encoded() == "B"; };
    only_b.abilities.clear();
    scheduler.set_worker(only_b);
    const auto needs = [](const std::string& requirement) {
        auto made = std::make_shared<Profile>(*profile(""));
        made->requirement = Requirement::decode(requirement);
        return made;
    };
    scheduler.add(job_id(1), keys(needs("A"), at(0), 10));
    scheduler.add(job_id(2), keys(needs("B"), at(0), 1));
    EXPECT_EQ(scheduler.expected_wait(job_id(1), at(0)), std::nullopt);
    EXPECT_THAT(drain(at(1)), ElementsAre(job_id(2)));
    EXPECT_TRUE(scheduler.contains(job_id(1)));
    only_b.can_run = nullptr;
    scheduler.set_worker(only_b);
    EXPECT_THAT(drain(at(1)), ElementsAre(job_id(1)));
}

TEST_F(SchedulerTest, PositionsAreTheOrderInWhichJobsAreTaken) {
    scheduler.set_worker(worker("w"));
    std::mt19937 random(7);
    std::vector<ProfilePtr> profiles;
    for (int i = 0; i < 5; ++i) {
        auto made = std::make_shared<Profile>(*profile(""));
        made->shape = std::to_string(i);
        profiles.push_back(made);
    }
    std::vector<JobId> waiting;
    for (std::uint64_t i = 0; i < 600; ++i) {
        const std::string tenant(1, static_cast<char>('a' + random() % 3));
        auto made = keys(
            profiles[random() % 5],
            at(static_cast<double>(i) / 100),
            1 + static_cast<int>(random() % 10),
            tenant
        );
        scheduler.add(job_id(i), made);
        waiting.push_back(job_id(i));
        if (random() % 3 == 0) {
            const std::size_t victim = random() % waiting.size();
            EXPECT_TRUE(scheduler.remove(waiting[victim]));
            EXPECT_FALSE(scheduler.remove(waiting[victim]));
            waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(victim));
        }
    }
    EXPECT_EQ(scheduler.size(), waiting.size());
    std::map<std::size_t, JobId> by_position;
    for (const JobId& job : waiting) {
        by_position[*scheduler.position(job, at(7))] = job;
    }
    std::vector<JobId> expected;
    for (const auto& [position, job] : by_position) {
        expected.push_back(job);
        EXPECT_EQ(position, expected.size());
    }
    EXPECT_EQ(drain(at(7)), expected);
}

TEST_F(SchedulerTest, ALateClassGetsATurnButNotTheQueue) {
    scheduler.set_worker(worker("w"));
    const ProfilePtr plain = profile("");
    std::uint64_t number = 0;
    for (int i = 0; i < 20; ++i) {
        scheduler.add(job_id(++number), keys(plain, at(0), 2));
    }
    for (int i = 0; i < 40; ++i) {
        scheduler.add(job_id(100 + ++number), keys(plain, at(590), 9));
    }
    const auto in_time = scheduler.next(at(599));
    EXPECT_EQ(in_time->keys.priority, 9);
    scheduler.finished(in_time->job, 1, at(599));
    int low = 0;
    int since = 0;
    for (int i = 0; i < 32; ++i) {
        const auto decision = scheduler.next(at(700));
        ASSERT_TRUE(decision);
        scheduler.finished(decision->job, 1, at(700));
        low += decision->keys.priority == 2 ? 1 : 0;
        since = decision->keys.priority == 2 ? 0 : since + 1;
        EXPECT_LE(since, 4);
    }
    EXPECT_GE(low, 7);
    EXPECT_LE(low, 9);
}

TEST_F(SchedulerTest, ALoadForAHigherClassIsPutOffForWarmWorkAWhile) {
    scheduler.set_worker(worker("w"));
    scheduler.set_models("w", {{"checkpoint/warm", 4 * kGiB}});
    for (std::uint64_t i = 1; i <= 20; ++i) {
        scheduler.add(job_id(i), keys(profile("warm"), at(0), 2));
    }
    scheduler.add(job_id(100), keys(profile("cold"), at(0), 9));
    const auto place = [&](double seconds) {
        const auto decision = scheduler.next(at(seconds));
        scheduler.finished(decision->job, 1, at(seconds));
        return decision->job;
    };
    EXPECT_EQ(place(0), job_id(1));
    EXPECT_EQ(place(5), job_id(2));
    EXPECT_EQ(place(6), job_id(100)) << "a fifth of its target is over";

    scheduler.set_models("w", {{"checkpoint/warm", 4 * kGiB}});
    scheduler.add(job_id(101), keys(profile("cold"), at(10), 9));
    scheduler.set_worker(worker("other"));
    EXPECT_EQ(scheduler.next(at(10))->job, job_id(3));
    EXPECT_EQ(scheduler.next(at(10))->job, job_id(101)) << "nothing is left free for it";

    estimates.load_s = 0.1;
    Scheduler quick(estimates);
    quick.set_worker(worker("w"));
    quick.set_models("w", {{"checkpoint/warm", 4 * kGiB}});
    quick.add(job_id(1), keys(profile("warm"), at(0), 2));
    quick.add(job_id(2), keys(profile("cold"), at(0), 9));
    EXPECT_EQ(quick.next(at(1))->job, job_id(2)) << "a short load is not worth it";
}

TEST_F(SchedulerTest, TenantsAndTheirKeysTakeTurns) {
    scheduler.set_worker(worker("w"));
    const ProfilePtr plain = profile("");
    for (std::uint64_t i = 0; i < 30; ++i) {
        auto made = keys(plain, at(0), 5, "busy");
        made.fairness_key = i < 20 ? "x" : "y";
        scheduler.add(job_id(i), made);
    }
    for (std::uint64_t i = 0; i < 5; ++i) {
        scheduler.add(job_id(100 + i), keys(plain, at(1), 5, "small"));
    }
    const auto order = drain(at(2));
    std::set<JobId> first(order.begin(), order.begin() + 10);
    for (std::uint64_t i = 0; i < 5; ++i) {
        EXPECT_TRUE(first.contains(job_id(100 + i))) << i;
    }
    // Of the busy tenant's first 20, half are of each key.
    int y = 0;
    int seen = 0;
    for (const JobId& job : order) {
        if (job < job_id(30) && ++seen <= 20) {
            y += job < job_id(20) ? 0 : 1;
        }
    }
    EXPECT_EQ(y, 10);
}

TEST_F(SchedulerTest, NoMoreOfATenantRunThanAllowed) {
    for (int i = 0; i < 4; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    scheduler.set_tenant("a", {1, 2});
    const ProfilePtr plain = profile("");
    for (std::uint64_t i = 0; i < 6; ++i) {
        scheduler.add(job_id(i), keys(plain, at(0)));
    }
    scheduler.add(job_id(10), keys(plain, at(1), 5, "b"));
    std::vector<JobId> running;
    while (auto decision = scheduler.next(at(1))) {
        running.push_back(decision->job);
    }
    EXPECT_EQ(running.size(), 3U);
    EXPECT_TRUE(scheduler.explain(job_id(5), at(1))->tenant_at_limit);
    scheduler.finished(running.front(), 1, at(2));
    EXPECT_EQ(scheduler.next(at(2))->keys.tenant, "a");
    EXPECT_FALSE(scheduler.next(at(2)));
    scheduler.set_tenant("a", {1, 3});
    EXPECT_TRUE(scheduler.next(at(2)));
    EXPECT_EQ(scheduler.size(), 2U);
}

TEST_F(SchedulerTest, WhoIsHeldBackWaitsAndIsToldWhyAndWantsNoMachines) {
    for (int i = 0; i < 3; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    const auto waiting = [this] {
        std::size_t jobs = 0;
        for (const Backlog& kind : scheduler.backlog()) {
            jobs += kind.waiting.jobs;
        }
        std::size_t demanded = 0;
        for (const Demand& demand : scheduler.demands()) {
            demanded += demand.waiting.jobs;
        }
        EXPECT_EQ(jobs, demanded);
        return jobs;
    };
    const ProfilePtr plain = profile("");
    scheduler.add(job_id(1), keys(plain, at(0)));
    scheduler.add(job_id(2), keys(plain, at(0)));
    ASSERT_TRUE(scheduler.next(at(0)));
    const auto arrived = scheduler.arrived_s();
    scheduler.set_tenant("a", {.hold = "nothing is left"});
    scheduler.add(job_id(3), keys(plain, at(1)));
    EXPECT_EQ(waiting(), 0U);
    EXPECT_EQ(scheduler.arrived_s(), arrived);
    EXPECT_EQ(scheduler.size(), 2U);
    EXPECT_EQ(scheduler.waiting(WaitClass::medium).jobs, 2U) << "they wait all the same";
    EXPECT_FALSE(scheduler.next(at(1)));
    const auto told = scheduler.explain(job_id(3), at(1));
    EXPECT_THAT(told->reasons, ElementsAre("nothing is left"));
    EXPECT_TRUE(told->tenant_at_limit);
    EXPECT_EQ(told->expected_wait_s, std::nullopt);

    scheduler.add(job_id(10), keys(plain, at(2), 5, "b"));
    EXPECT_EQ(waiting(), 1U);
    EXPECT_EQ(scheduler.position(job_id(10), at(2)), 1U) << "they are not before others";
    scheduler.add(job_id(11), keys(plain, at(2), 2, "b"));
    EXPECT_EQ(scheduler.position(job_id(11), at(2)), 2U);
    EXPECT_TRUE(scheduler.remove(job_id(11)));
    EXPECT_EQ(scheduler.next(at(2))->job, job_id(10)) << "others go on";
    scheduler.set_tenant("a", {.hold = "still nothing"});
    EXPECT_TRUE(scheduler.remove(job_id(3)));
    scheduler.finished(job_id(1), 1, at(3));
    EXPECT_FALSE(scheduler.next(at(3)));
    EXPECT_EQ(waiting(), 0U);

    scheduler.set_tenant("a", {});
    EXPECT_EQ(waiting(), 1U);
    EXPECT_EQ(scheduler.next(at(4))->job, job_id(2));
    EXPECT_EQ(waiting(), 0U);
    EXPECT_TRUE(scheduler.backlog().empty());
}

TEST_F(SchedulerTest, AWarmWorkerIsPreferred) {
    scheduler.set_worker(worker("cold"));
    scheduler.set_worker(worker("warm"));
    scheduler.set_models("warm", profile("x")->models);
    scheduler.add(job_id(1), keys(profile("x"), at(0)));
    const auto decision = scheduler.next(at(0));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->worker, "warm");
    EXPECT_EQ(decision->why, Why::warm);
    EXPECT_EQ(decision->numbers.load_s, 0);
    EXPECT_EQ(decision->other_worker, "cold");
    EXPECT_EQ(decision->other.load_s, 20);
    EXPECT_EQ(scheduler.loads(), 0U);
}

TEST_F(SchedulerTest, WaitsForAWarmWorkerWhereThatIsCheaper) {
    scheduler.set_worker(worker("cold"));
    scheduler.set_worker(worker("warm"));
    scheduler.set_models("warm", profile("x")->models);
    scheduler.add(job_id(1), keys(profile("x"), at(0)));
    ASSERT_EQ(scheduler.next(at(0))->worker, "warm");
    scheduler.add(job_id(2), keys(profile("x"), at(0)));
    EXPECT_FALSE(scheduler.next(at(0)));
    const auto told = scheduler.explain(job_id(2), at(0));
    EXPECT_EQ(told->waits_for, "warm");
    EXPECT_EQ(told->workers_capable, 2U);
    ASSERT_TRUE(scheduler.wake_at());
    // It takes longer than expected: after a while the other worker is the better choice.
    EXPECT_GT(*scheduler.wake_at(), at(1));
    EXPECT_LT(*scheduler.wake_at(), at(2));
    EXPECT_FALSE(scheduler.next(at(0.5)));
    scheduler.finished(job_id(1), 1, at(1));
    EXPECT_EQ(scheduler.next(at(1))->worker, "warm");
}

TEST_F(SchedulerTest, SpreadsExactlyWhenTheQueueOutweighsTheLoad) {
    scheduler.set_worker(worker("cold"));
    scheduler.set_worker(worker("warm"));
    scheduler.set_models("warm", profile("x")->models);
    std::uint64_t number = 0;
    scheduler.add(job_id(++number), keys(profile("x"), at(0)));
    ASSERT_EQ(scheduler.next(at(0))->worker, "warm");
    std::size_t waiting = 0;
    std::optional<Decision> spread;
    while (!spread && waiting < 100) {
        scheduler.add(job_id(++number), keys(profile("x"), at(0)));
        ++waiting;
        spread = scheduler.next(at(0));
    }
    ASSERT_TRUE(spread);
    EXPECT_EQ(waiting, 21U);  // 1 s until it is free + 21 x 1 s > 20 s to load + 1 s to run
    EXPECT_EQ(spread->worker, "cold");
    EXPECT_EQ(spread->why, Why::spread);
    EXPECT_EQ(spread->other_worker, "warm");
    EXPECT_EQ(spread->job, job_id(number)) << "the one whose turn comes when the load is done";
}

TEST_F(SchedulerTest, ALowerClassGetsNoLoadThatAHigherOneWaitsWithout) {
    scheduler.set_worker(worker("warm"));
    const ProfilePtr x = profile("x", 15);
    scheduler.set_models("warm", x->models);
    scheduler.add(job_id(1), keys(x, at(0)));
    ASSERT_EQ(scheduler.next(at(0))->worker, "warm");
    scheduler.set_worker(worker("cold"));
    scheduler.add(job_id(2), keys(x, at(1), 9));
    EXPECT_FALSE(scheduler.next(at(1))) << "the warm one is sooner free than the other has loaded";
    for (std::uint64_t i = 0; i < 6; ++i) {
        scheduler.add(job_id(10 + i), keys(x, at(2), 2));
    }
    // Their queue outweighs the load.
    const auto decision = scheduler.next(at(2));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->worker, "cold");
    EXPECT_EQ(decision->job, job_id(2));
    EXPECT_EQ(decision->why, Why::spread);
}

TEST_F(SchedulerTest, WhatDoesNotFitGoesElsewhere) {
    auto small = worker("small");
    small.vram_bytes = 8 * kGiB;
    auto large = worker("large");
    large.vram_bytes = 80 * kGiB;
    auto medium = worker("medium");
    scheduler.set_worker(large);
    scheduler.set_worker(small);
    scheduler.add(job_id(1), keys(profile("x", 1, 12 * kGiB), at(0)));
    EXPECT_EQ(scheduler.next(at(0))->worker, "large");
    scheduler.add(job_id(2), keys(profile("x", 1, 12 * kGiB), at(0)));
    EXPECT_FALSE(scheduler.next(at(0))) << "never where it does not fit";
    EXPECT_THAT(scheduler.explain(job_id(2), at(0))->workers.back().reason, HasSubstr("8.0 GiB"));
    scheduler.set_worker(medium);
    scheduler.finished(job_id(1), 1, at(1));
    scheduler.forget_models("large");
    EXPECT_EQ(scheduler.next(at(1))->worker, "medium") << "the tightest fit";
    scheduler.add(job_id(3), keys(profile("y", 1, 200 * kGiB), at(0)));
    EXPECT_EQ(scheduler.next(at(1))->worker, "large") << "fits nowhere: the largest may try";
}

TEST_F(SchedulerTest, ModelsGoWhereTheMainMemoryHoldsThem) {
    auto small = worker("small");
    small.ram_bytes = 3 * kGiB;
    auto large = worker("large");
    large.ram_bytes = 64 * kGiB - 4096;
    scheduler.set_worker(small);
    scheduler.set_worker(large);
    scheduler.add(job_id(1), keys(profile("x"), at(0)));  // of 4 GiB
    EXPECT_EQ(scheduler.next(at(0))->worker, "large");
    scheduler.add(job_id(2), keys(profile("x"), at(0)));
    EXPECT_FALSE(scheduler.next(at(0))) << "it waits";
    EXPECT_THAT(
        scheduler.explain(job_id(2), at(0))->workers.back().reason,
        HasSubstr("its machine has 3.0 GiB of memory, the job's models take 4.0 GiB")
    );
    scheduler.add(job_id(3), keys(profile(""), at(0)));
    EXPECT_EQ(scheduler.next(at(0))->worker, "small") << "what needs no model goes anywhere";
    scheduler.remove_worker("large");
    scheduler.finished(job_id(3), 1, at(1));
    EXPECT_EQ(scheduler.next(at(1))->worker, "small") << "nobody has more: it may try";
    auto unknown = worker("unknown");
    scheduler.set_worker(unknown);
    scheduler.finished(job_id(2), 1, at(2));
    scheduler.forget_models("small");
    scheduler.add(job_id(4), keys(profile("y"), at(2)));
    EXPECT_EQ(scheduler.next(at(2))->worker, "unknown") << "against it nothing is known";
}

TEST_F(SchedulerTest, WorkersOnOneGpuShareItsMemory) {
    for (const char* id : {"a", "b", "c"}) {
        auto state = worker(id);
        state.gpu = "gpu0";
        state.vram_bytes = 24 * kGiB;
        scheduler.set_worker(state);
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
        scheduler.add(job_id(i), keys(profile("", 1, 10 * kGiB), at(0)));
    }
    const auto first = scheduler.next(at(0));
    const auto second = scheduler.next(at(0));
    ASSERT_TRUE(first && second);
    EXPECT_NE(first->worker, second->worker);
    EXPECT_EQ(second->numbers.vram_free, 14 * kGiB);
    EXPECT_FALSE(scheduler.next(at(0))) << "20 of 24 GiB are in use";
    scheduler.finished(first->job, 1, at(1));
    EXPECT_TRUE(scheduler.next(at(1)));
}

TEST_F(SchedulerTest, SlotsAndDraining) {
    auto state = worker("w");
    state.slots = 2;
    scheduler.set_worker(state);
    for (std::uint64_t i = 0; i < 4; ++i) {
        scheduler.add(job_id(i), keys(profile("", 1, kGiB), at(0)));
    }
    EXPECT_TRUE(scheduler.next(at(0)));
    EXPECT_TRUE(scheduler.next(at(0)));
    EXPECT_FALSE(scheduler.next(at(0)));
    state.available = false;
    scheduler.set_worker(state);
    scheduler.finished(job_id(0), 1, at(1));
    EXPECT_FALSE(scheduler.next(at(1)));
    EXPECT_THAT(scheduler.explain(job_id(3), at(1))->workers[0].reason, HasSubstr("draining"));
    state.available = true;
    scheduler.set_worker(state);
    EXPECT_TRUE(scheduler.next(at(1)));
    EXPECT_FALSE(scheduler.next(at(1)));
    scheduler.remove_worker("w");
    scheduler.finished(job_id(1), 1, at(2));
    EXPECT_FALSE(scheduler.next(at(2)));
    EXPECT_EQ(scheduler.size(), 1U);
}

TEST_F(SchedulerTest, AJobThatFailedGoesToAnotherWorkerIfThereIsOne) {
    scheduler.set_worker(worker("a"));
    scheduler.set_worker(worker("b"));
    auto poison = keys(profile("x"), at(0));
    poison.avoid = {"a"};
    scheduler.set_models("a", poison.profile->models);
    scheduler.add(job_id(1), poison);
    EXPECT_EQ(scheduler.next(at(0))->worker, "b");
    scheduler.add(job_id(2), poison);
    EXPECT_FALSE(scheduler.next(at(0))) << "waits for b";
    scheduler.add(job_id(3), keys(profile("x"), at(0)));
    EXPECT_EQ(scheduler.next(at(0))->job, job_id(3)) << "and does not keep others from a";
    scheduler.finished(job_id(3), 1, at(1));
    scheduler.remove_worker("b");
    EXPECT_EQ(scheduler.next(at(1))->worker, "a") << "there is no other";
}

TEST_F(SchedulerTest, OnlyTheLatestModelsStayUnlessTheWorkerKeepsMore) {
    auto plain = worker("plain");
    scheduler.set_worker(plain);
    const auto load_of = [&](std::uint64_t number, const char* checkpoint) {
        scheduler.add(job_id(number), keys(profile(checkpoint), at(0)));
        const auto decision = scheduler.next(at(0));
        scheduler.finished(job_id(number), 1, at(0));
        return decision->numbers.load_s;
    };
    EXPECT_EQ(load_of(1, "x"), 20);
    EXPECT_EQ(load_of(2, "x"), 0);
    EXPECT_EQ(load_of(3, "y"), 20);
    EXPECT_EQ(load_of(4, "x"), 20);
    scheduler.forget_models("plain");
    EXPECT_EQ(load_of(5, "x"), 20);
    plain.model_memory_bytes = 4 * kGiB;
    scheduler.set_worker(plain);
    EXPECT_EQ(load_of(6, "y"), 20);
    EXPECT_EQ(load_of(7, "x"), 0);
    EXPECT_EQ(load_of(8, "z"), 20);
    EXPECT_EQ(load_of(9, "y"), 20) << "the one that was used least recently had to go";
}

TEST_F(SchedulerTest, JobsOfABatchAreAlikeAndDelayNobody) {
    Options options;
    options.merge_max = 4;
    Scheduler merging(estimates, options);
    auto state = worker("w");
    state.merges = true;
    merging.set_worker(state);
    auto mergeable = std::make_shared<Profile>(*profile("x", 1, 6 * kGiB));
    mergeable->can_be_merged = true;
    for (std::uint64_t i = 0; i < 8; ++i) {
        merging.add(job_id(i), keys(mergeable, at(0), 5, i % 2 == 0 ? "a" : "b"));
    }
    merging.add(job_id(20), keys(profile("y"), at(0), 3));
    const auto merged = merging.next(at(0));
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->batched.size(), 3U);
    EXPECT_EQ(merging.size(), 5U);
    for (const auto& other : merged->batched) {
        EXPECT_FALSE(merging.contains(other.job));
        EXPECT_EQ(other.keys.profile, mergeable);
        merging.finished(other.job, 1, at(1));
    }
    merging.finished(merged->job, 1, at(1));
    merging.add(job_id(30), keys(profile("y"), at(1), 9));
    merging.add(job_id(31), keys(mergeable, at(1), 10));
    const auto above = merging.next(at(1));
    EXPECT_EQ(above->job, job_id(31));
    EXPECT_TRUE(above->batched.empty()) << "a job of the high class waits";
    // 6 GiB of which 4 are the model: 2 more for each further job.
    state.vram_bytes = 9 * kGiB;
    merging.set_worker(state);
    merging.remove(job_id(30));
    merging.finished(job_id(31), 1, at(2));
    EXPECT_EQ(merging.next(at(2))->batched.size(), 1U);
}

TEST_F(SchedulerTest, ExplainsWhyAJobWaits) {
    scheduler.set_worker(worker("w"));
    const ProfilePtr x = profile("x", 10);
    for (std::uint64_t i = 0; i < 5; ++i) {
        scheduler.add(job_id(i), keys(x, at(0), 9, "b"));
    }
    scheduler.add(job_id(10), keys(x, at(0), 5, "b"));
    scheduler.add(job_id(11), keys(x, at(0), 5, "a"));
    ASSERT_TRUE(scheduler.next(at(0)));
    const auto told = scheduler.explain(job_id(11), at(3));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->position, 6U);
    EXPECT_EQ(told->wait_class, WaitClass::medium);
    EXPECT_EQ(told->ahead_by_class[0].jobs, 4U);
    EXPECT_EQ(told->ahead_by_class[1].jobs, 1U);
    EXPECT_EQ(told->ahead_by_tenant.at("b").jobs, 1U);
    EXPECT_EQ(told->workers_capable, 1U);
    EXPECT_EQ(told->waited_s, 3);
    EXPECT_NEAR(told->expected_wait_s.value_or(0), 27 + 50, 15);
    EXPECT_THAT(told->reasons, ::testing::Contains(HasSubstr("higher class")));
    EXPECT_THAT(told->advice, ::testing::Contains(HasSubstr("priority")));
    EXPECT_FALSE(scheduler.explain(job_id(99), at(3)));
}

TEST_F(SchedulerTest, AFreeWorkerIsNotAskedForMoreWorkers) {
    scheduler.set_worker(worker("warm"));
    const ProfilePtr x = profile("x", 15);
    scheduler.add(job_id(1), keys(x, at(0)));
    ASSERT_TRUE(scheduler.next(at(0)));
    scheduler.add(job_id(2), keys(x, at(0)));
    scheduler.add(job_id(3), keys(x, at(0)));
    ASSERT_FALSE(scheduler.next(at(1)));
    EXPECT_THAT(
        scheduler.explain(job_id(3), at(1))->advice,
        ::testing::Contains(HasSubstr("one more worker"))
    );
    scheduler.set_worker(worker("cold"));
    EXPECT_THAT(
        scheduler.explain(job_id(3), at(1))->advice,
        ::testing::Not(::testing::Contains(HasSubstr("one more worker")))
    );
}

TEST_F(SchedulerTest, NobodyWhoCouldRunItIsExplained) {
    scheduler.add(job_id(1), keys(profile("x"), at(0)));
    auto told = scheduler.explain(job_id(1), at(1));
    EXPECT_EQ(told->expected_wait_s, std::nullopt);
    EXPECT_THAT(told->reasons, ElementsAre("there is no worker"));
    auto down = worker("one");
    down.available = false;
    down.unavailable_why = "is down: connection refused";
    scheduler.set_worker(down);
    auto draining = worker("two");
    draining.available = false;
    draining.unavailable_why = "is draining";
    scheduler.set_worker(draining);
    told = scheduler.explain(job_id(1), at(1));
    EXPECT_EQ(told->expected_wait_s, std::nullopt);
    EXPECT_THAT(
        told->reasons,
        ElementsAre(
            "no worker can run it now",
            "worker 'one' takes no jobs now: it is down: connection refused",
            "worker 'two' takes no jobs now: it is draining"
        )
    );
}

TEST_F(SchedulerTest, KnowsTheCircumstancesOfAJobBeforeItIsAdded) {
    const auto with_lora = [] {
        auto made = std::make_shared<Profile>(*profile("a", 400, 6 * kGiB));
        made->models.push_back({"lora/x", kGiB});
        return made;
    }();
    EXPECT_EQ(scheduler.circumstances(with_lora).memory_part, std::nullopt) << "no worker";
    scheduler.set_worker(worker("w"));
    auto known = scheduler.circumstances(with_lora);
    EXPECT_EQ(known.expected_seconds, 400);
    EXPECT_EQ(known.memory_part, 0.25);
    EXPECT_EQ(known.cached_part, 0);
    scheduler.set_models("w", {{"checkpoint/a", 4 * kGiB}});
    EXPECT_NEAR(*scheduler.circumstances(with_lora).cached_part, 0.8, 1e-9);
    scheduler.set_models("w", {{"lora/x", kGiB}});
    EXPECT_EQ(scheduler.circumstances(with_lora).cached_part, 0) << "the largest model counts";
    scheduler.add(job_id(1), keys(profile("a"), at(0)));
    ASSERT_TRUE(scheduler.next(at(0)));
    EXPECT_EQ(scheduler.circumstances(profile("a")).cached_part, 1) << "also of a busy worker";
    scheduler.remove_worker("w");
    EXPECT_EQ(scheduler.circumstances(with_lora).memory_part, std::nullopt);

    estimates.knows = false;
    known = scheduler.circumstances(profile("b"));
    EXPECT_EQ(known.expected_seconds, std::nullopt) << "the plan alone is not enough";
    EXPECT_EQ(known.memory_part, std::nullopt);
    estimates.knows = true;
    Profile unknown;
    EXPECT_EQ(grounds_of(scheduler.circumstances(std::make_shared<Profile>(unknown))), Grounds{});
}

TEST_F(SchedulerTest, TheGroundsOfAPriorityStayWithTheJob) {
    scheduler.set_worker(worker("w"));
    Circumstances asked;
    asked.tier = Tier::enterprise;
    asked.quota_left = 0.01;
    auto made = keys(profile(""), at(0), 9);
    made.grounds = grounds_of(asked);
    made.fairness_key = "user-7";
    scheduler.add(job_id(1), made);
    EXPECT_EQ(scheduler.keys_of(job_id(1)).grounds, made.grounds);
    const auto told = scheduler.explain(job_id(1), at(1));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->priority, 9);
    EXPECT_EQ(told->grounds, made.grounds);
    EXPECT_EQ(told->fairness_key, "user-7");
    EXPECT_EQ(scheduler.next(at(1))->keys.grounds, made.grounds);
}

TEST_F(SchedulerTest, RunsFoundAgainCount) {
    scheduler.set_worker(worker("w"));
    scheduler.running(job_id(1), "w", keys(profile("x"), at(0)), at(0));
    scheduler.running(job_id(2), "unknown", keys(profile("x"), at(0)), at(0));
    scheduler.add(job_id(3), keys(profile("x"), at(0)));
    EXPECT_FALSE(scheduler.next(at(0)));
    scheduler.finished(job_id(2), 1, at(1));
    scheduler.finished(job_id(1), 1, at(1));
    const auto decision = scheduler.next(at(1));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->numbers.load_s, 0) << "the models of what ran are there";
}

}  // namespace
}  // namespace comfyd::scheduler
