// Jobs that wait share one run where the worker has comfyd's node pack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

class Merged : public testing::Test {
protected:
    ~Merged() override {
        comfyd_.reset();
        gpu_.reset();
        thread_.stop();
    }

    void serve(DoubleOptions options, std::vector<std::string> more = {}) {
        options.batch_pack = true;
        thread_.start();
        gpu_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(options));
        gpu_->start();
        ComfydOptions with;
        with.arguments = {"--no-engine", "--worker", gpu_->url(), "--set", "fleet.poll_ms=100"};
        with.arguments.insert(with.arguments.end(), more.begin(), more.end());
        comfyd_ = std::make_unique<Comfyd>(with);
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 1;
        })) << comfyd_->log();
    }

    // The first occupies the worker, long enough for a busy machine; the others wait behind it.
    std::vector<std::string> submit(int count) {
        const auto before = gpu_->executions().total;
        std::vector<std::string> ids;
        for (int i = 0; i < count; ++i) {
            json::object graph = text_to_image("picture " + std::to_string(i));
            graph.at("3").at("inputs").as_object()["seed"] = 100 + i;
            ids.push_back(comfyd_->submit(graph));
            if (i == 0) {
                EXPECT_TRUE(wait_until([&] { return gpu_->executions().total > before; }));
            }
        }
        return ids;
    }

    // The one picture of a job shows what the job asked for, and holds the job's own prompt.
    void expect_own_picture(const std::string& id, int number) {
        const json::value job = comfyd_->wait_finished(id);
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
        ASSERT_EQ(job.at("outputs").as_array().size(), 1U);
        const std::string url(job.at("outputs").at(0).at("url").as_string());
        const std::string png = comfyd_->http().get(url.substr(url.find("/api"))).body;
        EXPECT_THAT(
            png,
            HasSubstr("picture " + std::to_string(number) + " seed " + std::to_string(100 + number))
        );
        EXPECT_THAT(png, HasSubstr("\"text\": \"picture " + std::to_string(number) + "\""));
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> gpu_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Merged, WhatWaitsSharesOneRun) {
    serve({.delay = Millis(800)});
    const auto ids = submit(6);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        expect_own_picture(ids[i], static_cast<int>(i));
    }
    EXPECT_EQ(gpu_->executions().total, 2U) << "one alone, then five together";
}

TEST_F(Merged, TheLargestRunIsSet) {
    serve({.delay = Millis(800)}, {"--set", "scheduler.merge_max=2"});
    const auto ids = submit(5);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        expect_own_picture(ids[i], static_cast<int>(i));
    }
    EXPECT_EQ(gpu_->executions().total, 3U);
}

// What other processes have on the GPU is not what a job of a batch needs.
TEST_F(Merged, LoneRunsOnASharedGpuDoNotEndMerging) {
    serve({.delay = Millis(800), .vram_own = 2'700'000'000, .vram_others = 18'000'000'000});
    for (int i = 0; i < 3; ++i) {
        comfyd_->wait_finished(comfyd_->submit(text_to_image("alone " + std::to_string(i))));
    }
    const auto ids = submit(6);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        expect_own_picture(ids[i], static_cast<int>(i));
    }
    EXPECT_EQ(gpu_->executions().total, 3U + 2U);
}

TEST_F(Merged, OneOfThemIsCancelled) {
    serve({.delay = Millis(1'500)});
    const auto ids = submit(4);
    ASSERT_TRUE(wait_until([this] { return gpu_->executions().total == 2; }));
    comfyd_->http().post_json("/api/v2/jobs/" + ids[2] + "/cancel", json::object());
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(ids[2])), "canceled");
    expect_own_picture(ids[1], 1);
    expect_own_picture(ids[3], 3);
    EXPECT_EQ(gpu_->executions().total, 2U);
}

TEST_F(Merged, AFailedRunIsRepeatedJobByJobAndNotTriedAgain) {
    DoubleOptions options{.delay = Millis(800)};
    options.faults.run.merge_error = true;
    serve(std::move(options));
    const auto ids = submit(4);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        expect_own_picture(ids[i], static_cast<int>(i));
    }
    EXPECT_EQ(gpu_->executions().total, 5U) << "four alone, and one try together";
}

TEST_F(Merged, AKilledGatewayFindsTheRunAgain) {
    serve({.delay = Millis(1'500)});
    const auto ids = submit(5);
    ASSERT_TRUE(wait_until([this] { return gpu_->executions().total == 2; }));
    comfyd_->restart();
    for (std::size_t i = 0; i < ids.size(); ++i) {
        expect_own_picture(ids[i], static_cast<int>(i));
    }
    EXPECT_EQ(gpu_->executions().total, 2U) << "nothing ran twice";
}

}  // namespace
}  // namespace comfyd::support
