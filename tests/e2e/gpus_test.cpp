// Workers with different GPUs in two regions: a request that names one gets it, also after a crash
// and from every API, and whoever asks for what there is not is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kGiB = 1024LL * 1024 * 1024;

class Gpus : public testing::Test {
protected:
    Gpus() {
        thread_.start();
        small_ = std::make_unique<ComfyDouble>(
            thread_.context(),
            DoubleOptions{
                .delay = Millis(200), .gpu = "NVIDIA GeForce RTX 4090", .vram_total = 25'250'627'584
            }
        );
        large_ = std::make_unique<ComfyDouble>(
            thread_.context(),
            DoubleOptions{.delay = Millis(200), .gpu = "NVIDIA H200", .vram_total = 140 * kGiB}
        );
        small_->start();
        large_->start();
        const std::string file = folder_ / "comfyd.yaml";
        std::ofstream(file) << "workers:\n"
                            << "  - {id: large, url: \"" << large_->url() << "\", region: us}\n"
                            << "  - {id: small, url: \"" << small_->url() << "\", region: eu}\n"
                            << "fleet:\n  poll_ms: 100\n";
        comfyd_ =
            std::make_unique<Comfyd>(ComfydOptions{.arguments = {"--no-engine", "--config", file}});
    }
    ~Gpus() override {
        comfyd_.reset();
        small_.reset();
        large_.reset();
        thread_.stop();
    }
    void SetUp() override { wait_for_workers(); }
    void wait_for_workers() {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 2;
        })) << comfyd_->log();
    }
    static json::object gpu(const char* type, double memory = 0) {
        json::object wanted;
        if (*type != '\0') {
            wanted["gpu_type"] = type;
        }
        if (memory > 0) {
            wanted["memory_gb"] = memory;
        }
        return {{"gpu_requirements", wanted}};
    }
    // The worker that ran it.
    std::string run(const char* text, const json::object& members) {
        const std::string id = comfyd_->submit(text_to_image(text), members);
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
        return std::string(
            comfyd_->http().get("/api/v1/tasks/" + id).json_at("/worker_id").as_string()
        );
    }

    TempDir folder_;
    net::IoThread thread_{"doubles"};
    std::unique_ptr<ComfyDouble> small_;
    std::unique_ptr<ComfyDouble> large_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Gpus, AJobRunsWhereItMay) {
    EXPECT_EQ(run("a", gpu("H200")), "large");
    EXPECT_EQ(run("b", gpu("rtx 4090")), "small");
    EXPECT_EQ(run("c", gpu("", 100)), "large");
    EXPECT_EQ(run("d", gpu("", 24)), "small") << "the least waste, though the other has the model";
    EXPECT_EQ(run("e", {{"region", "us"}}), "large");
    EXPECT_EQ(run("f", {{"region", "EU"}, {"gpu_memory_fraction", 0.9}}), "small");
    const Reply gpus = comfyd_->http().get("/v2/gpus");
    EXPECT_EQ(gpus.json_at("/total_gpus"), 2) << gpus.body;
    EXPECT_EQ(gpus.json_at("/gpus/0/gpu_type"), "NVIDIA H200");
    EXPECT_EQ(gpus.json_at("/gpus/0/memory_gb"), 140.0);
    EXPECT_EQ(comfyd_->http().get("/api/v1/workers/small").json_at("/region"), "eu");
}

TEST_F(Gpus, WaitsForItsGpuAlsoAfterACrash) {
    std::vector<std::string> ids;
    for (int i = 0; i < 4; ++i) {
        ids.push_back(comfyd_->submit(text_to_image(std::to_string(i)), gpu("H200", 141)));
    }
    ASSERT_TRUE(wait_until([this] { return large_->executions().total >= 1; }));
    const Reply told = comfyd_->http().get("/v2/workflows/execution/" + ids.back() + "/explain");
    EXPECT_THAT(told.body, HasSubstr("lacks the GPU 'H200' (it has 'NVIDIA GeForce RTX 4090')"));
    const Reply scale = comfyd_->http().get("/v2/pools/default/scale");
    ASSERT_EQ(scale.status, 200) << scale.body;
    EXPECT_GE(scale.json_at("/waiting").as_int64(), 1) << scale.body;
    EXPECT_GE(scale.json_at("/machines").as_int64(), 1) << scale.body;
    EXPECT_EQ(scale.json_at("/workers/0/worker"), "small") << "it is idle";
    comfyd_->restart();
    for (const std::string& id : ids) {
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
    EXPECT_EQ(large_->executions().total, 4U);
    EXPECT_EQ(small_->executions().total, 0U);
}

TEST_F(Gpus, WhatThereIsNotIsRefusedWithWhatThereIs) {
    json::object request = gpu("L40S");
    request["workflow"] = text_to_image("x");
    const Reply refused = comfyd_->http().post_json("/v2/workflows/execute", request);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_EQ(refused.json_at("/error/code"), "no_capable_worker");
    EXPECT_EQ(refused.json_at("/error/details/machines/1/gpu_type"), "NVIDIA GeForce RTX 4090");
    EXPECT_EQ(refused.json_at("/error/details/machines/1/memory_gb"), 23.5);
    const Reply native = comfyd_->http().post_json(
        "/prompt",
        {{"prompt", text_to_image("y")}, {"extra_data", {{"comfyd", {{"region", "mars"}}}}}}
    );
    EXPECT_EQ(native.status, 400);
    EXPECT_THAT(native.body, HasSubstr("the region 'mars'"));
    const Reply other = comfyd_->http().post_json(
        "/prompt",
        {{"prompt", text_to_image("z")},
         {"extra_data", {{"comfyd", {{"gpu_requirements", {{"gpu_type", "H200"}}}}}}}}
    );
    EXPECT_EQ(other.status, 200) << other.body;
    EXPECT_TRUE(wait_until([this] { return large_->executions().total == 1; }));
    EXPECT_EQ(small_->executions().total, 0U);
}

}  // namespace
}  // namespace comfyd::support
