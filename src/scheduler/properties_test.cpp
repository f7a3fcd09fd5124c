// What must hold whatever comes: nothing is lost or placed twice, nothing starves, shares are fair,
// no worker idles for nothing, the same calls give the same answers.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;

struct Story {
    std::vector<std::pair<JobId, std::string>> placed;
    std::map<std::string, double> seconds_of_tenant;
};

// Random arrivals, cancellations, failing and vanishing workers.
Story tell_story(std::uint32_t seed, PolicyName policy) {
    std::mt19937 random(seed);
    const auto chance = [&random](unsigned of) { return random() % of == 0; };
    TableEstimates estimates;
    Options options;
    options.policy = policy;
    Scheduler scheduler(estimates, options);
    std::vector<ProfilePtr> profiles;
    for (int i = 0; i < 12; ++i) {
        auto made = std::make_shared<Profile>(*profile(
            i < 2 ? std::string() : "c" + std::to_string(i),
            1 + i % 4,
            (4 + static_cast<std::uint64_t>(i) % 5 * 6) * kGiB
        ));
        made->requirement = Requirement::of({{i % 3 == 0 ? "A" : "B"}});
        profiles.push_back(made);
    }
    const auto set = [&](int number) {
        auto state = worker("w" + std::to_string(number), number % 2 == 0 ? "A" : "B");
        state.vram_bytes = number % 3 == 0 ? 12 * kGiB : 48 * kGiB;
        state.slots = number == 5 ? 2 : 1;
        state.gpu = number >= 6 ? "shared" : "";
        const bool only_b = number == 1;
        state.abilities = only_b ? "B" : "AB";
        state.can_run = [only_b](const Requirement& what) {
            return !only_b || what.encoded() == "B";
        };
        scheduler.set_worker(state);
    };
    for (int i = 0; i < 8; ++i) {
        set(i);
    }
    std::set<JobId> waiting;
    std::map<JobId, std::pair<std::string, double>> running;  // worker, end
    Story story;
    double now = 0;
    std::uint64_t number = 0;
    for (int step = 0; step < 4000; ++step) {
        now += 0.2;
        while (chance(4) && step < 3000) {
            const JobId job = job_id(++number);
            auto made = keys(
                profiles[random() % profiles.size()],
                at(now),
                1 + static_cast<int>(random() % 10),
                std::string(1, static_cast<char>('a' + random() % 4))
            );
            made.batch = chance(10);
            if (chance(10)) {
                made.avoid.push_back("w" + std::to_string(random() % 8));
            }
            scheduler.add(job, made);
            waiting.insert(job);
        }
        if (chance(20) && !waiting.empty()) {
            EXPECT_TRUE(scheduler.remove(*waiting.begin()));
            waiting.erase(waiting.begin());
        }
        if (chance(50) || step >= 3900) {
            const int which = static_cast<int>(random() % 8);
            const std::string id = "w" + std::to_string(which);
            if (scheduler.has_worker(id) && step < 3000 && which != 2) {
                scheduler.remove_worker(id);
            } else {
                set(which);
            }
        }
        for (auto it = running.begin(); it != running.end();) {
            if (it->second.second <= now) {
                scheduler.finished(it->first, 1, at(now));
                it = running.erase(it);
            } else {
                ++it;
            }
        }
        while (const auto decision = scheduler.next(at(now))) {
            EXPECT_EQ(waiting.erase(decision->job), 1U) << "placed once, and only what waits";
            EXPECT_TRUE(scheduler.has_worker(decision->worker));
            const double takes = decision->numbers.load_s / 10 + decision->numbers.run_s;
            EXPECT_TRUE(
                running.emplace(decision->job, std::pair(decision->worker, now + takes)).second
            );
            story.placed.emplace_back(decision->job, decision->worker);
        }
        EXPECT_EQ(scheduler.size(), waiting.size());
        EXPECT_EQ(scheduler.running_count(), running.size());
        // Nobody idles for nothing: what waits and could start waits for a warm worker.
        if (step % 20 == 0) {
            for (const JobId& job : waiting) {
                const auto told = scheduler.explain(job, at(now));
                const std::vector<std::string> avoid = scheduler.keys_of(job).avoid;
                for (const WorkerVerdict& verdict : told->workers) {
                    const bool is_free = verdict.capable && verdict.reason.starts_with("free") &&
                                         verdict.reason.find("memory") == std::string::npos;
                    if (is_free && avoid.empty()) {
                        EXPECT_FALSE(told->waits_for.empty())
                            << "step " << step << " " << verdict.worker << ": " << verdict.reason;
                    }
                }
            }
        }
    }
    EXPECT_TRUE(waiting.empty()) << waiting.size() << " jobs never ran";
    return story;
}

TEST(Properties, NothingIsLostPlacedTwiceOrLeftWithoutNeed) {
    for (std::uint32_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE(seed);
        for (const PolicyName policy :
             {PolicyName::finish_time, PolicyName::score, PolicyName::fifo}) {
            const Story story = tell_story(seed, policy);
            EXPECT_GT(story.placed.size(), 700U);
        }
    }
}

TEST(Properties, TheSameCallsGiveTheSameAnswers) {
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
        EXPECT_EQ(
            tell_story(seed, PolicyName::finish_time).placed,
            tell_story(seed, PolicyName::finish_time).placed
        );
    }
}

// Tenants that always have work, with different weights, models and run times, which last longer
// or shorter than expected.
TEST(Properties, SharesAreFairWithinFivePercent) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    for (int i = 0; i < 4; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    const std::map<std::string, double> weights{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 1}};
    std::map<std::string, ProfilePtr> profiles;
    for (const auto& [tenant, weight] : weights) {
        scheduler.set_tenant(tenant, {weight, 0});
        profiles[tenant] = profile(tenant == "d" ? "a" : tenant, tenant == "b" ? 7 : 3);
    }
    World world(scheduler);
    std::map<std::string, double> had;
    world.lasts = [](const Decision& decision) {
        const double part = decision.keys.tenant == "c"   ? 1.5
                            : decision.keys.tenant == "a" ? 0.7
                                                          : 1;
        return decision.numbers.load_s + part * decision.numbers.run_s;
    };
    std::uint64_t number = 0;
    const auto submit = [&](const std::string& tenant) {
        scheduler.add(job_id(++number), keys(profiles[tenant], at(world.now_s), 5, tenant));
    };
    for (const auto& [tenant, weight] : weights) {
        for (int i = 0; i < 50; ++i) {
            submit(tenant);
        }
    }
    world.on_finished = [&](const Decision& decision) { submit(decision.keys.tenant); };
    world.run(100'000);
    double all = 0;
    for (const World::Placed& placed : world.placed) {
        had[placed.decision.keys.tenant] += placed.end_s - placed.start_s;
        all += placed.end_s - placed.start_s;
    }
    for (const auto& [tenant, weight] : weights) {
        EXPECT_NEAR(had[tenant] / all, weight / 7, 0.05 * weight / 7) << tenant;
    }
    EXPECT_GT(all, 0.99 * 4 * 100'000) << "nobody idled";
    EXPECT_LT(static_cast<double>(scheduler.loads()) * 20, 0.15 * all) << "nor only loaded models";
}

// More work of the high class than can be done: the others still get their turns.
TEST(Properties, NothingStarves) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    scheduler.set_worker(worker("w0"));
    scheduler.set_worker(worker("w1"));
    World world(scheduler);
    std::uint64_t number = 0;
    std::map<JobId, double> low;
    for (int i = 0; i < 20'000; ++i) {
        world.submit_at(i * 0.4, job_id(++number), keys(profile("high"), at(0), 9));
    }
    for (int i = 0; i < 100; ++i) {
        const int priority = i % 2 == 0 ? 5 : 2;
        auto made =
            keys(profile(i % 3 == 0 ? "high" : "low" + std::to_string(i % 4)), at(0), priority);
        made.batch = i % 10 == 0;
        low[job_id(++number)] = i * 10.0;
        world.submit_at(i * 10.0, job_id(number), made);
    }
    world.run(8'000);
    std::size_t high_since_low = 0;
    for (const World::Placed& placed : world.placed) {
        const auto found = low.find(placed.decision.job);
        if (found == low.end()) {
            ++high_since_low;
            continue;
        }
        EXPECT_LT(placed.start_s - found->second, 6000) << placed.decision.keys.priority;
        low.erase(found);
    }
    EXPECT_TRUE(low.empty()) << low.size() << " never ran";
    EXPECT_GT(high_since_low, 10'000U);
}

// So much of what can be done if no model ever had to be loaded, in all classes, with as many
// models on eight workers; a load takes 2.5 times as long as a run.
class ClassTargets : public ::testing::TestWithParam<std::pair<double, int>> {};
INSTANTIATE_TEST_SUITE_P(
    Properties,
    ClassTargets,
    ::testing::Values(
        std::pair(0.5, 10), std::pair(0.7, 10), std::pair(0.6, 20), std::pair(0.85, 3)
    )
);

TEST_P(ClassTargets, AreMet) {
    const auto [load, models] = GetParam();
    TableEstimates estimates;
    estimates.load_s = 10;
    Scheduler scheduler(estimates);
    for (int i = 0; i < 8; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    World world(scheduler);
    std::mt19937 random(3);
    std::exponential_distribution<double> gap(8 * load / 4.0);
    std::vector<double> weights;
    for (int i = 0; i < models; ++i) {
        weights.push_back(1.0 / (i + 1));
    }
    std::discrete_distribution<int> pick(weights.begin(), weights.end());
    double when = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        when += gap(random);
        const int kind = static_cast<int>(random() % 10);
        const int priority = kind < 2 ? 9 : kind < 7 ? 5 : 2;
        world.submit_at(
            when,
            job_id(i),
            keys(
                profile("c" + std::to_string(pick(random)), 4),
                at(0),
                priority,
                std::string(1, static_cast<char>('a' + random() % 5))
            )
        );
    }
    world.run();
    std::map<int, std::vector<double>> waits;
    for (const World::Placed& placed : world.placed) {
        waits[placed.decision.keys.priority].push_back(placed.decision.waited_s);
    }
    const std::map<int, double> targets{{9, 30}, {5, 120}, {2, 600}};
    for (auto& [priority, list] : waits) {
        std::sort(list.begin(), list.end());
        EXPECT_LT(list[list.size() * 99 / 100], targets.at(priority)) << "priority " << priority;
    }
    EXPECT_EQ(world.placed.size(), 20'000U);
}

// Jobs of all classes come as fast as three workers could run them without a load.
class Inversions : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Properties, Inversions, ::testing::Range(1U, 11U));

// A lower class goes before a higher one that waits at most once in four times: for those that are
// late, and where a load is put off or a busy worker is worth waiting for.
TEST_P(Inversions, AreBounded) {
    TableEstimates estimates;
    Scheduler scheduler(estimates);
    for (int i = 0; i < 3; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    World world(scheduler);
    std::mt19937 random(GetParam());
    std::uint64_t number = 0;
    for (int i = 0; i < 3000; ++i) {
        world.submit_at(
            i * 0.3,
            job_id(++number),
            keys(profile(random() % 3 == 0 ? "x" : "y"), at(0), 1 + static_cast<int>(random() % 10))
        );
    }
    std::size_t inversions = 0;
    world.lasts = [&](const Decision& decision) {
        const WaitClass own = wait_class_of(decision.keys.priority, false);
        for (std::size_t i = 0; i < static_cast<std::size_t>(own); ++i) {
            const auto above = static_cast<WaitClass>(i);
            if (scheduler.waiting(above).jobs > 0 && decision.queue_length > 0) {
                ++inversions;
                break;
            }
        }
        return decision.numbers.load_s + decision.numbers.run_s;
    };
    world.run();
    EXPECT_EQ(world.placed.size(), 3000U);
    EXPECT_LE(inversions, world.placed.size() / 4);
}

// Bursts, several models and tenants: what a job is told when it comes, against what it waited.
TEST(Properties, ExpectedWaitsAreAboutRight) {
    TableEstimates estimates;
    estimates.load_s = 10;
    Scheduler scheduler(estimates);
    for (int i = 0; i < 8; ++i) {
        scheduler.set_worker(worker("w" + std::to_string(i)));
    }
    World world(scheduler);
    std::mt19937 random(1);
    std::exponential_distribution<double> gap(8 * 0.9 / 4);
    std::map<JobId, std::pair<double, double>> told;  // when, and what
    double when = 0;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        when += gap(random) * (i % 200 < 150 ? 0.6 : 2.2);
        world.run(when);
        world.now_s = when;
        const std::string checkpoint = "c" + std::to_string(random() % 4);
        const std::string tenant(1, static_cast<char>('a' + random() % 3));
        scheduler.add(job_id(i), keys(profile(checkpoint, 4), at(when), 5, tenant));
        world.place();
        if (const auto expected = scheduler.expected_wait(job_id(i), at(when))) {
            told[job_id(i)] = {when, *expected};
        }
    }
    world.run();
    std::vector<double> ratios;
    for (const World::Placed& placed : world.placed) {
        const auto found = told.find(placed.decision.job);
        if (found != told.end() && placed.start_s - found->second.first > 2) {
            ratios.push_back(found->second.second / (placed.start_s - found->second.first));
        }
    }
    ASSERT_GT(ratios.size(), 1000U);
    std::sort(ratios.begin(), ratios.end());
    EXPECT_GT(ratios[ratios.size() / 2], 0.7);
    EXPECT_LT(ratios[ratios.size() / 2], 1.4);
    EXPECT_GT(ratios[ratios.size() / 10], 0.2);
    EXPECT_LT(ratios[ratios.size() * 9 / 10], 4);
}

}  // namespace
}  // namespace comfyd::scheduler
