// Models that a worker loads ahead of jobs.
#include <gmock/gmock.h>

#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

std::string text_to_image(const std::string& checkpoint) {
    auto prompt = *json::parse_object(R"({
        "3": {"class_type": "KSampler", "inputs": {"seed": 1, "steps": 4, "cfg": 8, "denoise": 1,
              "sampler_name": "euler", "scheduler": "normal", "model": ["4", 0],
              "positive": ["6", 0], "negative": ["6", 0], "latent_image": ["5", 0]}},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": "a dog"}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "p"}}})"
    );
    prompt.at("4").at("inputs").as_object()["ckpt_name"] = checkpoint;
    return json::serialize(prompt);
}

const std::string kSmall = "sd15.safetensors";
const std::string kLarge = "sub/xl.safetensors";

class WarmTest : public FleetTest {
protected:
    // A load under way.
    struct Load {
        explicit Load(Executor core) : group(core) {}
        TaskGroup group;
        std::promise<Result<>> promise;
        std::future<Result<>> result = promise.get_future();
    };
    std::unique_ptr<Load> load(std::string workflow, Millis patience = Millis(20'000)) {
        auto made = std::make_unique<Load>(core_.executor());
        on_core([&] {
            made->group.spawn(
                "load", warm(*made, fleet_->find("gpu"), std::move(workflow), patience)
            );
        });
        return made;
    }
    Result<> end(Load& load) {
        if (load.result.wait_for(support::kDeadline) != std::future_status::ready) {
            ADD_FAILURE() << "the load does not end";
            std::abort();
        }
        auto result = load.result.get();
        wait(load.group.join());
        return result;
    }
    Code code_of(Load& load) {
        const Result<> result = end(load);
        EXPECT_FALSE(result);
        return result ? Code::internal : result.error().code;
    }
    bool wait_until_runs(std::uint64_t count) {
        return support::wait_until([&] { return comfy_->executions().total == count; });
    }
    void fault(support::RunFaults run) {
        support::Faults faults;
        faults.run = run;
        comfy_->set_faults(faults);
    }
    void stop_warming() {
        on_core([&] { fleet_->find("gpu")->stop_warming(); });
    }

private:
    static Task<> warm(
        Load& load, std::shared_ptr<jobs::Worker> worker, std::string workflow, Millis patience
    ) {
        auto result = co_await worker->warm(std::move(workflow), patience);
        load.promise.set_value(std::move(result));
    }
};

TEST_F(WarmTest, LoadsWithoutSamplingAndTheNextJobFindsTheModels) {
    start({.load = Millis(20), .batch_pack = true});
    EXPECT_TRUE(end(*load(text_to_image(kLarge))));
    const auto prompts = comfy_->accepted_prompts();
    ASSERT_EQ(prompts.size(), 1U);
    const std::string sent = json::serialize(prompts.front());
    EXPECT_THAT(sent, testing::HasSubstr("ComfydWarm"));
    EXPECT_THAT(sent, testing::Not(testing::HasSubstr("KSampler")));
    EXPECT_EQ(comfy_->executions().loads, 1U);
    EXPECT_TRUE(run(assignment(text_to_image(kLarge))));
    EXPECT_EQ(comfy_->executions().loads, 1U);
    EXPECT_TRUE(run(assignment(text_to_image(kSmall))));
    EXPECT_EQ(comfy_->executions().loads, 2U);
    EXPECT_EQ(worker_info().completed, 2U) << "a load is no job";
}

TEST_F(WarmTest, AWorkerWithoutTheNodePackIsNotAsked) {
    start({.load = Millis(20)});
    EXPECT_FALSE(on_core([&] { return fleet_->find("gpu")->warms(); }));
    EXPECT_EQ(code_of(*load(text_to_image(kSmall))), Code::worker_unavailable);
    EXPECT_TRUE(comfy_->accepted_prompts().empty());
}

TEST_F(WarmTest, AWorkflowWithoutKnownLoadersOrThatIsNoneLoadsNothing) {
    start({.batch_pack = true});
    for (const char* workflow : {kPicture, "{}", "[1]", "{\"1\":", ""}) {
        EXPECT_EQ(code_of(*load(workflow)), Code::not_found) << workflow;
    }
    EXPECT_EQ(code_of(*load(text_to_image("gone.safetensors"))), Code::worker_rejected);
    EXPECT_EQ(comfy_->executions().total, 0U);
}

TEST_F(WarmTest, IsCalledBackForAJobThatNeedsSomethingElse) {
    start({.batch_pack = true});
    fault({.hang_interruptible = true});
    auto loading = load(text_to_image(kLarge));
    ASSERT_TRUE(wait_until_runs(1));
    EXPECT_TRUE(on_core([&] { return fleet_->find("gpu")->available(); })) << "for a job";
    stop_warming();
    EXPECT_EQ(code_of(*loading), Code::cancelled);
    fault({});
    EXPECT_TRUE(run(assignment(text_to_image(kSmall))));
}

// A server that stops whatever runs could stop the job.
TEST_F(WarmTest, OldServersLoadToTheEnd) {
    start({.version = "0.3.45", .delay = Millis(300), .batch_pack = true});
    auto loading = load(text_to_image(kLarge));
    ASSERT_TRUE(wait_until_runs(1));
    stop_warming();
    EXPECT_TRUE(run(assignment(text_to_image(kSmall))));
    EXPECT_TRUE(end(*loading));
}

TEST_F(WarmTest, WhatTakesTooLongIsCalledBack) {
    start({.batch_pack = true});
    fault({.hang_interruptible = true});
    EXPECT_EQ(code_of(*load(text_to_image(kLarge), Millis(50))), Code::execution_timeout);
    fault({});
    EXPECT_TRUE(run(assignment(text_to_image(kLarge))));
}

TEST_F(WarmTest, AWorkerThatDoesNotStopLoadingGetsNoJobsUntilItHas) {
    options_.cancel_grace = Millis(100);
    start({.batch_pack = true});
    fault({.hang = true});
    EXPECT_EQ(code_of(*load(text_to_image(kLarge), Millis(50))), Code::execution_timeout);
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::down));
    EXPECT_THAT(worker_info().last_error, testing::HasSubstr("does not stop"));
    comfy_->crash();
    fault({});
    comfy_->start();
    ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    EXPECT_TRUE(run(assignment(text_to_image(kLarge))));
}

TEST_F(WarmTest, FailsWithTheWorkerAndWithItsLoaders) {
    start({.batch_pack = true});
    fault({.node_error = true});
    EXPECT_EQ(code_of(*load(text_to_image(kLarge))), Code::node_execution_error);
    fault({.lose_prompt = true});
    EXPECT_EQ(code_of(*load(text_to_image(kLarge))), Code::worker_lost);
    fault({.hang = true});
    const auto before = comfy_->executions().total;
    auto loading = load(text_to_image(kLarge));
    ASSERT_TRUE(wait_until_runs(before + 1));
    comfy_->crash();
    EXPECT_EQ(code_of(*loading), Code::worker_lost);
}

TEST_F(WarmTest, OneLoadAtATime) {
    start({.batch_pack = true});
    fault({.hang_interruptible = true});
    auto loading = load(text_to_image(kLarge));
    ASSERT_TRUE(wait_until_runs(1));
    EXPECT_EQ(code_of(*load(text_to_image(kSmall))), Code::worker_unavailable);
    stop_warming();
    EXPECT_EQ(code_of(*loading), Code::cancelled);
}

}  // namespace
}  // namespace comfyd::fleet
