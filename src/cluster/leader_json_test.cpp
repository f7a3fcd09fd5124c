#include "cluster/leader_json.hpp"

#include <gtest/gtest.h>

namespace comfyd::cluster {
namespace {

TEST(LeaderJson, ALoadGoesFromNodeToNode) {
    jobs::Load load;
    load.waiting = {{{"gold", "H200", "eu", 141, 0.5}, 7, 1.5, true}, {{}, 1'000'000, 0.25, false}};
    load.workers = {
        {"a", "gold", jobs::WorkerStatus::running, 2, 1, 3.5, 4},
        {"b", "default", jobs::WorkerStatus::down, 1, 0, 0, 0},
    };
    const jobs::Load read = load_from_json(to_json(load));
    ASSERT_EQ(read.waiting.size(), 2U);
    EXPECT_EQ(read.waiting[0].machine, load.waiting[0].machine);
    EXPECT_EQ(read.waiting[0].seconds, 1.5);
    EXPECT_TRUE(read.waiting[0].is_served);
    EXPECT_EQ(read.waiting[1].jobs, 1'000'000U);
    ASSERT_EQ(read.workers.size(), 2U);
    EXPECT_EQ(read.workers[0].worker, "a");
    EXPECT_EQ(read.workers[0].wanted, 4U);
    EXPECT_EQ(read.workers[1].status, jobs::WorkerStatus::down);
}

// A node of another version may say something else: then it has said nothing.
TEST(LeaderJson, WhatIsNoLoadIsNone) {
    for (const char* odd :
         {R"({})", R"({"waiting": 7, "workers": []})", R"({"waiting": [], "workers": [{}]})"}) {
        const jobs::Load read = load_from_json(*json::parse_object(odd));
        EXPECT_TRUE(read.waiting.empty()) << odd;
        EXPECT_TRUE(read.workers.empty()) << odd;
    }
}

TEST(LeaderJson, AWorkerKeepsItsRegion) {
    jobs::WorkerInfo worker;
    worker.id = "w";
    worker.region = "eu";
    worker.machine = "comfyd-main-0123456789ab";
    worker.gpu = "NVIDIA L40S";
    worker.vram_total = 48'000'000'000;
    worker.jobs = {JobId::make(Time(Millis(1))), JobId::make(Time(Millis(2)))};
    worker.running = 2;
    const jobs::WorkerInfo read = worker_from_json(to_json(worker));
    EXPECT_EQ(read.region, "eu");
    EXPECT_EQ(read.machine, worker.machine);
    EXPECT_EQ(read.jobs, worker.jobs);
    EXPECT_EQ(read.running, 2U);
    EXPECT_EQ(read.facts().gpu, "NVIDIA L40S");
    EXPECT_EQ(read.facts().gpu_memory_bytes, worker.vram_total);
}

}  // namespace
}  // namespace comfyd::cluster
