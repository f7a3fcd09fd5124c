// Jobs that name a GPU, its memory, a part of it or a region.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "scheduler/test_support.hpp"

namespace comfyd::scheduler {
namespace {

using namespace testing;
using ::testing::HasSubstr;

ProfilePtr wishing(
    const MachineWish& wish, const std::string& model = "m", std::uint64_t vram = 0
) {
    auto made = std::make_shared<Profile>(*profile(model, 1, vram));
    made->requirement = made->requirement.on(wish);
    return made;
}

WorkerState with_gpu(
    const std::string& id, const std::string& gpu, std::uint64_t gib, const std::string& region = ""
) {
    WorkerState state = worker(id, gpu);
    state.vram_bytes = gib * kGiB;
    state.region = region;
    return state;
}

class GpuWishes : public ::testing::Test {
protected:
    // Where it is placed; empty: nowhere.
    std::string place(ProfilePtr of) {
        const JobId job = job_id(++number_);
        scheduler_.add(job, keys(std::move(of), at(now_)));
        const auto decision = scheduler_.next(at(now_));
        latest_ = job;
        return decision ? decision->worker : std::string();
    }
    // And ends at once.
    std::string place_alone(ProfilePtr of) {
        const std::string where = place(std::move(of));
        scheduler_.finished(latest_, 1, at(now_));
        scheduler_.remove(latest_);
        return where;
    }

    TableEstimates estimates_;
    Scheduler scheduler_{estimates_};
    std::uint64_t number_ = 0;
    double now_ = 0;
    JobId latest_{};
};

TEST_F(GpuWishes, AKindAMemoryAndARegionAreMusts) {
    scheduler_.set_worker(with_gpu("small", "NVIDIA GeForce RTX 4090", 24, "eu"));
    scheduler_.set_worker(with_gpu("large", "NVIDIA H200", 140, "us"));
    EXPECT_EQ(place_alone(wishing({.gpu = "RTX 4090"})), "small");
    EXPECT_EQ(place_alone(wishing({.gpu = "h200"})), "large");
    EXPECT_EQ(place_alone(wishing({.memory_gb = 48})), "large");
    EXPECT_EQ(place_alone(wishing({.memory_gb = 24})), "small") << "the least waste";
    EXPECT_EQ(place_alone(wishing({.region = "US"})), "large");
    EXPECT_EQ(place_alone(wishing({.region = "eu"})), "small");
    EXPECT_EQ(place_alone(wishing({.gpu = "L40S"})), "");
    EXPECT_EQ(place_alone(wishing({.gpu = "RTX 4090", .memory_gb = 48})), "");
    EXPECT_EQ(place_alone(wishing({.gpu = "RTX 4090", .region = "us"})), "");
}

TEST_F(GpuWishes, WaitsForTheOneThatItNeedsThoughAnotherIsFree) {
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24));
    scheduler_.set_worker(with_gpu("large", "H200", 140));
    ASSERT_EQ(place(wishing({.memory_gb = 100})), "large");
    const JobId first = latest_;
    EXPECT_EQ(place(wishing({.memory_gb = 100})), "");
    const auto told = scheduler_.explain(latest_, at(0));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->workers_capable, 1U);
    EXPECT_EQ(told->workers.at(1).reason, "lacks 100 GB of GPU memory (it has 24 GB)");
    scheduler_.finished(first, 1, at(1));
    const auto decision = scheduler_.next(at(1));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->worker, "large");
}

TEST_F(GpuWishes, WhatNobodyIsIsToldInWords) {
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24, "eu"));
    EXPECT_EQ(place(wishing({.gpu = "L40S", .region = "us"})), "");
    const auto told = scheduler_.explain(latest_, at(0));
    ASSERT_TRUE(told);
    EXPECT_FALSE(told->expected_wait_s);
    EXPECT_THAT(told->reasons.at(1), HasSubstr("lacks the GPU 'L40S' (it has 'RTX 4090')"));
    EXPECT_THAT(told->reasons.at(1), HasSubstr("the region 'us' (it is in 'eu')"));
}

// The large ones stay free for who needs them, also where they are faster and have the model.
TEST_F(GpuWishes, TheTightestOfTheFreeOnes) {
    estimates_.speeds["H200"] = 10;
    scheduler_.set_worker(with_gpu("large", "H200", 140));
    scheduler_.set_worker(with_gpu("middle", "L40S", 45));
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24));
    scheduler_.set_models("large", {{"checkpoint/m", 4 * kGiB}});
    EXPECT_EQ(place_alone(profile("m")), "large") << "nothing was wished for";
    EXPECT_EQ(place(wishing({.memory_gb = 16})), "small");
    EXPECT_EQ(place(wishing({.memory_gb = 16})), "middle");
    EXPECT_EQ(place(wishing({.memory_gb = 16})), "large");
    EXPECT_EQ(place(wishing({.memory_gb = 16})), "");
}

TEST_F(GpuWishes, TheExactNameFirst) {
    scheduler_.set_worker(with_gpu("a", "NVIDIA A100-SXM4-40GB", 40));
    scheduler_.set_worker(with_gpu("b", "NVIDIA A100 80GB PCIe", 80));
    EXPECT_EQ(place_alone(wishing({.gpu = "A100"})), "a") << "both are, and it is the smaller one";
    EXPECT_EQ(place(wishing({.gpu = "A100 80GB"})), "b");
    EXPECT_EQ(place(wishing({.gpu = "A100 80GB"}, "other")), "a") << "it is of the kind";
}

// Cards of a kind tell of a few megabytes more or less.
TEST_F(GpuWishes, AlikeIsAlike) {
    WorkerState cold = with_gpu("cold", "RTX 4090", 24);
    cold.vram_bytes -= 50'000'000;
    scheduler_.set_worker(cold);
    scheduler_.set_worker(with_gpu("warm", "RTX 4090", 24));
    scheduler_.set_models("warm", {{"checkpoint/m", 4 * kGiB}});
    EXPECT_EQ(place(wishing({.gpu = "RTX 4090", .memory_gb = 20})), "warm");
}

// Two processes on one GPU.
class SharedGpu : public GpuWishes {
protected:
    SharedGpu() {
        for (const char* id : {"one", "two", "three"}) {
            WorkerState state = with_gpu(id, "RTX 4090", 24);
            state.gpu = "card";
            scheduler_.set_worker(state);
        }
    }
};

TEST_F(SharedGpu, MemoryThatWasAskedForIsKeptForTheJob) {
    EXPECT_NE(place(wishing({.memory_gb = 16}, "m", 4 * kGiB)), "");
    EXPECT_EQ(place(wishing({.memory_gb = 12}, "m", 4 * kGiB)), "") << "10 GB are left";
    EXPECT_NE(place(profile("", 1, 8 * kGiB)), "");
    EXPECT_EQ(place(profile("", 1, 8 * kGiB)), "");
}

TEST_F(SharedGpu, APartIsAPart) {
    EXPECT_NE(place(wishing({.memory_part = 0.5}, "m", 4 * kGiB)), "");
    EXPECT_EQ(place(wishing({.memory_part = 0.6}, "m", 4 * kGiB)), "");
    EXPECT_NE(place(wishing({.memory_part = 0.5}, "m", 4 * kGiB)), "");
    EXPECT_EQ(place(wishing({.memory_part = 0.01}, "m", 4 * kGiB)), "") << "it needs 4 GiB";
}

TEST_F(GpuWishes, APartMustBeEnoughForTheJob) {
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24));
    scheduler_.set_worker(with_gpu("large", "H200", 140));
    EXPECT_EQ(place_alone(wishing({.memory_part = 0.5}, "m", 16 * kGiB)), "large");
    EXPECT_EQ(place_alone(wishing({.memory_part = 0.8}, "n", 16 * kGiB)), "small");
    EXPECT_EQ(place_alone(wishing({.memory_part = 0.01}, "m", 16 * kGiB)), "large")
        << "nowhere enough: the largest";
}

TEST_F(GpuWishes, OtherWishesDoNotShareARun) {
    estimates_.load_s = 0;
    Options options;
    options.merge_max = 4;
    Scheduler scheduler(estimates_, options);
    WorkerState state = with_gpu("w", "RTX 4090", 24);
    state.merges = true;
    scheduler.set_worker(state);
    std::uint64_t number = 0;
    const auto add = [&](const MachineWish& wish) {
        auto made = std::make_shared<Profile>(*wishing(wish, "m", kGiB));
        made->can_be_merged = true;
        scheduler.add(job_id(++number), keys(made, at(0)));
    };
    add({.gpu = "RTX 4090"});
    add({});
    add({.gpu = "RTX 4090"});
    add({.memory_gb = 8});
    const auto decision = scheduler.next(at(0));
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->job, job_id(1));
    ASSERT_EQ(decision->batched.size(), 1U);
    EXPECT_EQ(decision->batched[0].job, job_id(3));
}

TEST_F(GpuWishes, DemandsAreTold) {
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24));
    ASSERT_EQ(place(profile("m", 3)), "small");
    EXPECT_EQ(scheduler_.use_of("small", at(1)).jobs, 1U);
    EXPECT_NEAR(scheduler_.use_of("small", at(1)).seconds, 22, 0.1) << "the load and the run";
    for (int i = 0; i < 3; ++i) {
        place(wishing({.gpu = "H200"}, "x"));
        place(wishing({.pool = "p"}, "m"));
    }
    place(wishing({.gpu = "H200"}, "y"));
    const auto demands = scheduler_.demands();
    ASSERT_EQ(demands.size(), 2U);
    EXPECT_EQ(demands[0].machine.gpu, "H200");
    EXPECT_EQ(demands[0].waiting.jobs, 4U);
    EXPECT_FALSE(demands[0].is_served);
    EXPECT_EQ(demands[1].machine.pool, "p");
    EXPECT_EQ(demands[1].waiting.jobs, 3U);
    EXPECT_TRUE(demands[1].is_served);
    EXPECT_EQ(scheduler_.use_of("small", at(1)).wanted, 3U);
    EXPECT_EQ(scheduler_.use_of("nobody", at(1)).jobs, 0U);
}

TEST_F(GpuWishes, BacklogIsToldByClassAndModel) {
    scheduler_.set_worker(with_gpu("small", "RTX 4090", 24));
    std::uint64_t number = 100;
    const auto add = [&](const MachineWish& machine, const char* model, int priority, bool batch) {
        JobKeys made = keys(wishing(machine, model), at(0), priority);
        made.batch = batch;
        scheduler_.add(job_id(++number), made);
    };
    add({}, "m", 9, false);
    add({}, "m", 9, false);
    add({}, "m", 5, false);
    add({.pool = "p"}, "n", 5, true);
    add({.gpu = "H200"}, "m", 5, false);
    std::map<std::string, Backlog> told;
    for (const Backlog& kind : scheduler_.backlog()) {
        told[kind.machine.gpu + kind.machine.pool + std::string(to_string(kind.wait_class))] = kind;
    }
    ASSERT_EQ(told.size(), 4U);
    EXPECT_EQ(told["high"].waiting.jobs, 2U);
    EXPECT_EQ(told["high"].model, "checkpoint/m");
    EXPECT_GT(told["high"].load_s, 0);
    EXPECT_TRUE(told["medium"].is_served);
    EXPECT_FALSE(told["H200medium"].is_served);
    EXPECT_EQ(told["pbatch"].waiting.jobs, 1U);
    const auto arrived = scheduler_.arrived_s();
    EXPECT_NEAR(arrived.at(""), 2 * told["high"].waiting.seconds, 0.1) << "four alike";
    EXPECT_EQ(arrived.at("p"), 0) << "best effort does not count";
    for (std::uint64_t job = 101; job <= number; ++job) {
        scheduler_.remove(job_id(job));
    }
    EXPECT_TRUE(scheduler_.backlog().empty());
    EXPECT_EQ(scheduler_.arrived_s(), arrived);
    add({}, "m", 9, false);
    scheduler_.remove(job_id(number));
    EXPECT_EQ(scheduler_.arrived_s(), arrived) << "it was only asked about";
    add({}, "m", 9, false);
    ASSERT_TRUE(scheduler_.next(at(0)));
    EXPECT_GT(scheduler_.arrived_s().at(""), arrived.at("") * 1.1) << "and this one runs";
}

// Whatever comes: a job runs only where it may, GPUs are never overfilled, of several free ones the
// tightest is taken, and all that some worker can run comes to run.
TEST(GpuWishesProperties, HoldWhateverComes) {
    const std::vector<std::pair<std::string, std::uint64_t>> cards{
        {"NVIDIA GeForce RTX 4090", 24},
        {"NVIDIA L40S", 45},
        {"NVIDIA A100-SXM4-80GB", 79},
        {"NVIDIA A100-SXM4-40GB", 40},
        {"NVIDIA H200", 140},
        {"", 0}
    };
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto any = [&random](std::size_t of) { return random() % of; };
        TableEstimates estimates;
        Options options;
        options.policy = static_cast<PolicyName>(seed % 3);
        Scheduler scheduler(estimates, options);
        std::map<std::string, WorkerState> workers;
        for (int i = 0; i < 10; ++i) {
            const auto& [name, gib] = cards[any(cards.size())];
            WorkerState state = with_gpu("w" + std::to_string(i), name, gib, any(2) ? "eu" : "us");
            state.slots = 1 + static_cast<int>(any(2));
            workers[state.id] = state;
            scheduler.set_worker(state);
        }
        struct Running {
            std::string worker;
            std::uint64_t claim;
            double end;
        };
        std::map<JobId, Running> running;
        std::map<JobId, ProfilePtr> waiting;
        double now = 0;
        std::uint64_t number = 0;
        const auto facts = [](const WorkerState& state) {
            return MachineFacts{{}, state.gpu_type, state.region, state.vram_bytes};
        };
        for (int step = 0; step < 1500; ++step) {
            now += 0.5;
            if (step < 1000 && any(2) == 0) {
                MachineWish wish;
                wish.gpu = any(3) == 0 ? "A100" : any(4) == 0 ? "RTX 4090" : "";
                wish.memory_gb = any(2) == 0 ? 8.0 * static_cast<double>(any(20)) : 0;
                wish.memory_part = any(4) == 0 ? 0.25 * static_cast<double>(any(5)) : 0;
                wish.region = any(3) == 0 ? "eu" : "";
                const auto made = wishing(wish, "m" + std::to_string(any(5)), any(40) * kGiB);
                scheduler.add(job_id(++number), keys(made, at(now)));
                waiting[job_id(number)] = made;
            }
            for (auto it = running.begin(); it != running.end();) {
                if (it->second.end <= now) {
                    scheduler.finished(it->first, 1, at(now));
                    it = running.erase(it);
                } else {
                    ++it;
                }
            }
            while (const auto decision = scheduler.next(at(now))) {
                const ProfilePtr made = waiting.at(decision->job);
                const MachineWish wish = made->requirement.machine();
                const WorkerState& state = workers.at(decision->worker);
                EXPECT_TRUE(made->requirement.allows(facts(state)));
                std::map<std::string, std::uint64_t> used;
                std::map<std::string, int> runs;
                for (const auto& [id, run] : running) {
                    used[run.worker] += run.claim;
                    runs[run.worker] += 1;
                }
                const std::uint64_t claim = decision->numbers.vram_needed;
                EXPECT_GE(claim, wish.memory_part > 0 ? 0 : wish.memory_bytes());
                if (state.vram_bytes > 0 && used[state.id] > 0) {
                    EXPECT_LE(used[state.id] + claim, state.vram_bytes);
                }
                if (!wish.gpu.empty() || wish.memory_gb > 0) {
                    for (const auto& [id, other] : workers) {
                        const bool is_idle = runs[id] == 0 && runs[state.id] == 0;
                        const bool is_enough = made->vram_bytes <= other.vram_bytes;
                        EXPECT_FALSE(
                            is_idle && is_enough && made->requirement.allows(facts(other)) &&
                            wish.memory_part == 0 && other.vram_bytes * 11 / 10 < state.vram_bytes
                        ) << id
                          << " was idle and tighter than " << state.id;
                    }
                }
                running[decision->job] = {
                    state.id, claim, now + decision->numbers.load_s / 20 + decision->numbers.run_s
                };
                waiting.erase(decision->job);
            }
        }
        for (const auto& [job, made] : waiting) {
            const Requirement& requirement = made->requirement;
            EXPECT_TRUE(std::ranges::none_of(workers, [&](const auto& entry) {
                return requirement.allows(facts(entry.second));
            })) << requirement.encoded();
        }
    }
}

}  // namespace
}  // namespace comfyd::scheduler
