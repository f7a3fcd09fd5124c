// Idle workers load models ahead of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/shared_number.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

constexpr const char* kOften = "sd15.safetensors";
constexpr const char* kSeldom = "other.safetensors";  // as large

class Prewarm : public testing::Test {
protected:
    ~Prewarm() override {
        comfyd_.reset();
        gpu_.reset();
        thread_.stop();
    }

    void serve(DoubleOptions options, const std::string& mode, std::vector<std::string> more = {}) {
        options.batch_pack = true;
        options.models = {kSeldom};
        thread_.start();
        gpu_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(options));
        gpu_->start();
        ComfydOptions with;
        with.arguments = {
            "--no-engine",
            "--worker",
            gpu_->url(),
            "--set",
            "fleet.poll_ms=100",
            "--set",
            "scheduler.prewarm=" + mode,
        };
        with.arguments.insert(with.arguments.end(), more.begin(), more.end());
        with.environment = {
            {"LD_PRELOAD", COMFYD_SHIFTED_CLOCK}, {"COMFYD_TEST_CLOCK", clock_.path()}
        };
        comfyd_ = std::make_unique<Comfyd>(with);
        wait_until_idle();
    }
    void wait_until_idle() {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 1;
        })) << comfyd_->log();
    }

    std::string submit(const char* checkpoint) {
        json::object graph = text_to_image("picture " + std::to_string(++submitted_));
        graph.at("4").at("inputs").as_object()["ckpt_name"] = checkpoint;
        return comfyd_->submit(graph);
    }
    void run(const char* checkpoint) {
        const json::value job = comfyd_->wait_finished(submit(checkpoint));
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    }
    // What comes often, and at last what does not: the worker has the models of the latter.
    void run_several() {
        for (int i = 0; i < 4; ++i) {
            run(kOften);
        }
        run(kSeldom);
    }
    bool wait_for_metric(const std::string& line) {
        return wait_until([&] {
            return comfyd_->http().get("/metrics").body.find(line) != std::string::npos;
        });
    }
    // A load ahead of jobs runs on the worker now, or has run.
    bool wait_until_it_loads() {
        const auto jobs = static_cast<std::uint64_t>(submitted_);
        return wait_until([&] { return gpu_->executions().total > jobs; });
    }
    // After the latest job it has loaded something ahead of the next one. (It may have done so
    // between two jobs before, too: how long a test takes is nobody's promise.)
    bool wait_until_it_has_loaded() {
        return wait_until([this] {
            const auto prompts = gpu_->accepted_prompts();
            return !prompts.empty() && gpu_->queue_remaining() == 0 &&
                   json::serialize(prompts.back()).find("ComfydWarm") != std::string::npos;
        });
    }

    TempDir folder_;
    SharedNumber clock_{folder_ / "clock"};
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> gpu_;
    std::unique_ptr<Comfyd> comfyd_;
    int submitted_ = 0;
};

TEST_F(Prewarm, AnIdleWorkerHasTheModelsThatOftenComeWhenTheNextJobDoes) {
    serve({.load = Millis(50)}, "on");
    run_several();
    ASSERT_TRUE(wait_until_it_has_loaded()) << comfyd_->log();
    EXPECT_EQ(gpu_->executions().loads, 3U);
    run(kOften);
    EXPECT_EQ(gpu_->executions().loads, 3U) << "no load before the job";
    EXPECT_TRUE(wait_for_metric("comfyd_prewarms_total{outcome=\"loaded\"} 1")) << comfyd_->log();
    EXPECT_TRUE(wait_for_metric("\ncomfyd_prewarm_on 1\n"));
}

TEST_F(Prewarm, AJobThatNeedsOtherModelsCallsTheWorkerBack) {
    serve({.load = Millis(50)}, "on");
    run_several();
    Faults faults;
    faults.run.hang_interruptible = true;
    faults.run_prompts = 1;
    gpu_->set_faults(faults);
    ASSERT_TRUE(wait_until_it_loads()) << comfyd_->log();
    run(kSeldom);
    EXPECT_TRUE(wait_for_metric("comfyd_prewarms_total{outcome=\"called_back\"} 1"))
        << comfyd_->log();
}

TEST_F(Prewarm, AJobThatNeedsTheSameModelsRunsBehindTheLoad) {
    serve({.load = Millis(50), .journal = folder_ / "journal"}, "on");
    run_several();
    Faults faults;
    faults.run.held = true;
    faults.run_prompts = 1;
    gpu_->set_faults(faults);
    ASSERT_TRUE(wait_until_it_loads()) << comfyd_->log();
    const std::string id = submit(kOften);
    ASSERT_TRUE(comfyd_->wait_status(id, "running"));
    const auto loads = gpu_->executions().loads;
    folder_.write("let-go", "");
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded") << comfyd_->log();
    EXPECT_EQ(gpu_->executions().loads, loads);
    EXPECT_TRUE(wait_for_metric("comfyd_prewarms_total{outcome=\"loaded\"} 1")) << comfyd_->log();
}

// To whoever starts and stops machines by the work there is, a worker that loads ahead is idle.
TEST_F(Prewarm, ALoadAheadIsNoWorkForWhichMachinesAreStartedOrKept) {
    serve({.load = Millis(50)}, "on");
    run_several();
    Faults faults;
    faults.run.hang_interruptible = true;
    faults.run_prompts = 1;
    gpu_->set_faults(faults);
    ASSERT_TRUE(wait_until_it_loads()) << comfyd_->log();
    const Reply scale = comfyd_->http().get("/v2/pools/default/scale");
    EXPECT_EQ(scale.json_at("/machines"), 0) << scale.body;
    EXPECT_EQ(scale.json_at("/waiting"), 0);
    EXPECT_EQ(scale.json_at("/running"), 0);
    EXPECT_EQ(scale.json_at("/workers/0/running"), 0);
    EXPECT_EQ(scale.json_at("/workers/0/status"), "idle");
}

TEST_F(Prewarm, WhatIsPinnedIsLoadedThoughItIsSeldomUsed) {
    serve(
        {.load = Millis(50)}, "on", {"--set", std::string("scheduler.prewarm_models=") + kSeldom}
    );
    run(kSeldom);
    run(kOften);
    ASSERT_TRUE(wait_until_it_has_loaded()) << comfyd_->log();
    EXPECT_EQ(gpu_->executions().loads, 3U);
    run(kSeldom);
    EXPECT_EQ(gpu_->executions().loads, 3U);
}

TEST_F(Prewarm, AJobThatWaitsIsToldThatItsModelsAreLoadedAhead) {
    serve({.load = Millis(50)}, "on");
    run_several();
    Faults faults;
    faults.run.hang_interruptible = true;
    faults.run_prompts = 1;
    gpu_->set_faults(faults);
    ASSERT_TRUE(wait_until_it_loads()) << comfyd_->log();
    const std::string worker = gpu_->url().substr(std::string("http://").size());
    comfyd_->http().post("/admin/v1/workers/" + worker + "/drain", "");
    const std::string id = submit(kOften);
    EXPECT_THAT(
        comfyd_->http().get("/v2/workflows/execution/" + id + "/explain").body,
        HasSubstr(worker + " loads the models of such jobs ahead")
    );
}

TEST_F(Prewarm, WhenComfydIsKilledWhileAWorkerLoadsNoJobIsHarmed) {
    serve({.load = Millis(1'000)}, "on");
    run_several();
    ASSERT_TRUE(wait_until_it_loads()) << comfyd_->log();
    const std::string waiting = submit(kSeldom);
    comfyd_->restart();
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(waiting)), "succeeded") << comfyd_->log();
    run(kOften);
}

TEST_F(Prewarm, ALoadThatFailsHarmsNoJob) {
    serve({.load = Millis(50)}, "on");
    run_several();
    Faults faults;
    faults.run.node_error = true;
    faults.run_prompts = 1;
    gpu_->set_faults(faults);
    ASSERT_TRUE(wait_for_metric("comfyd_prewarms_total{outcome=\"failed\"} 1")) << comfyd_->log();
    run(kOften);
    run(kSeldom);
}

// An hour of jobs, made by a clock that jumps. Each time the worker idles with models that seldom
// come, so loading those that often come would have paid.
TEST_F(Prewarm, IsUsedOnceTheReplayOfPastJobsShowsThatItPays) {
    serve({.load = Millis(60)}, "auto", {"--set", "scheduler.prewarm_replay_s=1"});
    EXPECT_TRUE(wait_for_metric("\ncomfyd_prewarm_on 0\n"));
    for (int minutes = 0; minutes < 20; minutes += 2) {
        clock_.set(minutes * 60);
        run_several();
    }
    ASSERT_TRUE(wait_for_metric("\ncomfyd_prewarm_on 1\n")) << comfyd_->log();
    EXPECT_THAT(comfyd_->log(), HasSubstr("Loading models ahead of jobs pays here"));
    ASSERT_TRUE(wait_until_it_has_loaded()) << comfyd_->log();
    const auto loads = gpu_->executions().loads;
    run(kOften);
    EXPECT_EQ(gpu_->executions().loads, loads);
}

}  // namespace
}  // namespace comfyd::support
