#include <gmock/gmock.h>

#include "api/dialects/fleet/fleet.hpp"

namespace comfyd::api {
namespace {

constexpr std::uint64_t kGigabyte = 1024ULL * 1024 * 1024;

jobs::WorkerInfo worker(std::string id, jobs::WorkerStatus status, std::string gpu = "") {
    jobs::WorkerInfo info;
    info.id = std::move(id);
    info.url = "http://" + info.id;
    info.status = status;
    info.gpu = "RTX 4090";
    info.gpu_id = std::move(gpu);
    info.vram_total = 24 * kGigabyte;
    info.vram_free = 20 * kGigabyte;
    info.last_active_at = Time(Millis(1'700'000'000'000));
    return info;
}

TEST(Gpus, AreTheWorkersButForThoseOnACpu) {
    jobs::WorkerInfo engine = worker("engine", jobs::WorkerStatus::idle);
    engine.url = "engine:";
    jobs::WorkerInfo slow = worker("slow", jobs::WorkerStatus::idle);
    slow.gpu = "cpu";
    const JobId job = JobId::make(Time(Millis(1)));
    jobs::WorkerInfo busy = worker("b", jobs::WorkerStatus::running);
    busy.jobs = {job};
    busy.running = 1;
    busy.slots = 2;
    const auto all = {
        engine,
        slow,
        worker("a", jobs::WorkerStatus::idle),
        busy,
        worker("c", jobs::WorkerStatus::down),
    };
    const json::object pool = encode_gpus(all, [](const JobId&) { return true; });
    EXPECT_EQ(pool.at("total_gpus"), 3);
    EXPECT_EQ(pool.at("available_gpus"), 1);
    EXPECT_EQ(pool.at("allocated_gpus"), 1);
    EXPECT_NEAR(pool.at("utilization_percent").as_double(), 33.3, 0.1);
    const json::array& gpus = pool.at("gpus").as_array();
    EXPECT_EQ(gpus.at(0).at("gpu_id"), "a");
    EXPECT_EQ(gpus.at(0).at("gpu_type"), "RTX 4090");
    EXPECT_EQ(gpus.at(0).at("memory_gb"), 24.0);
    EXPECT_EQ(gpus.at(0).at("available_memory_gb"), 20.0);
    EXPECT_EQ(gpus.at(0).at("current_load"), 0.0);
    EXPECT_TRUE(gpus.at(0).at("allocated_to").is_null());
    EXPECT_EQ(gpus.at(0).at("last_used"), "2023-11-14T22:13:20.000Z");
    EXPECT_EQ(gpus.at(1).at("current_load"), 0.5);
    EXPECT_EQ(gpus.at(1).at("allocated_to").as_string(), job.to_string());
    EXPECT_EQ(gpus.at(2).at("available_memory_gb"), 0.0) << "it is down";
    const json::object hidden = encode_gpus(all, [](const JobId&) { return false; });
    EXPECT_TRUE(hidden.at("gpus").at(1).at("allocated_to").is_null()) << "another tenant's";
}

TEST(Gpus, WorkersThatShareOneAreOne) {
    jobs::WorkerInfo fuller = worker("b", jobs::WorkerStatus::idle, "GPU-1");
    fuller.vram_free = 4 * kGigabyte;
    const json::object pool = encode_gpus(
        {worker("a", jobs::WorkerStatus::idle, "GPU-1"), fuller}, [](const JobId&) { return true; }
    );
    EXPECT_EQ(pool.at("total_gpus"), 1);
    EXPECT_EQ(pool.at("gpus").at(0).at("gpu_id"), "GPU-1");
    EXPECT_EQ(pool.at("gpus").at(0).at("available_memory_gb"), 4.0);
}

TEST(Gpus, WhoRunsSeveralJobsIsAsFullAsItIsAndShowsEachItsOwn) {
    const JobId first = JobId::make(Time(Millis(1)));
    const JobId second = JobId::make(Time(Millis(2)));
    jobs::WorkerInfo busy = worker("a", jobs::WorkerStatus::running, "GPU-1");
    busy.slots = 4;
    busy.running = 3;
    busy.jobs = {first, second};
    jobs::WorkerInfo beside = worker("b", jobs::WorkerStatus::idle, "GPU-1");
    beside.slots = 2;
    const json::object pool =
        encode_gpus({busy, beside}, [&](const JobId& job) { return job == second; });
    const json::object& gpu = pool.at("gpus").as_array().at(0).as_object();
    EXPECT_EQ(gpu.at("current_load"), 0.5);
    EXPECT_EQ(gpu.at("allocated_to").as_string(), second.to_string());
    EXPECT_EQ(pool.at("allocated_gpus"), 1);
}

TEST(Gpus, NoneIsNoDivisionByNothing) {
    const json::object pool = encode_gpus({}, [](const JobId&) { return true; });
    EXPECT_EQ(pool.at("utilization_percent"), 0.0);
    EXPECT_TRUE(pool.at("gpus").as_array().empty());
}

}  // namespace
}  // namespace comfyd::api
