#include "fleet/usage_meter.hpp"

#include <gtest/gtest.h>

#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

constexpr double kPrice = 0.001;

const char* const kPortrait = R"({
    "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "2": {"class_type": "LoraLoader", "inputs": {"model": ["1", 0], "clip": ["1", 1],
          "lora_name": "ink.safetensors", "strength_model": 1, "strength_clip": 1}},
    "3": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "4": {"class_type": "KSampler", "inputs": {"model": ["2", 0], "steps": 4, "sampler_name": "euler"}},
    "5": {"class_type": "LoraLoader", "inputs": {"lora_name": ["6", 0]}},
    "7": "no node"})";

class UsageMeterTest : public testing::Test {
protected:
    void start(double at) { meter_.apply(comfy::ExecutionStart{"p", 0}, at); }
    void execute(const char* node, double at) {
        meter_.apply(comfy::Executing{"p", node, node}, at);
    }
    void step(const char* node, double value, double at) {
        meter_.apply(comfy::StepProgress{"p", node, value, 4}, at);
    }
    void finish(double at) { meter_.apply(comfy::Executing{"p", std::nullopt, ""}, at); }

    UsageMeter meter_{*json::parse_object(kPortrait)};
};

TEST_F(UsageMeterTest, LoadersAndTheFirstStepAreLoading) {
    start(10);
    execute("1", 10);
    execute("2", 13);
    execute("4", 14);
    // Two seconds until the model is on the GPU, then half a second a step.
    step("4", 1, 16.5);
    step("4", 2, 17);
    step("4", 3, 17.5);
    step("4", 4, 18);
    execute("9", 18);
    finish(20);
    const auto usage = meter_.usage(kPrice);
    EXPECT_EQ(usage.gpu, Millis(10'000));
    EXPECT_EQ(usage.model_load, Millis(3'000 + 1'000 + 2'000));
    EXPECT_EQ(usage.inference, Millis(4'000));
    EXPECT_EQ(usage.models, 2);
    EXPECT_EQ(usage.model_loads, 2);
    EXPECT_EQ(usage.vram_peak_bytes, std::nullopt);
    EXPECT_DOUBLE_EQ(usage.cost_usd, 10 * kPrice);
}

TEST_F(UsageMeterTest, WhatIsThereStillCostsNoLoading) {
    start(0);
    meter_.apply(comfy::ExecutionCached{"p", {"1", "2", "3"}, 0}, 0);
    execute("4", 0);
    for (int i = 1; i <= 4; ++i) {
        step("4", i, i);
        // The other kind of progress tells the same.
        comfy::NodeProgress node;
        node.node_id = "4";
        node.value = i;
        node.max = 4;
        meter_.apply(comfy::ProgressState{"p", {node}}, i + 0.25);
    }
    finish(4);
    const auto usage = meter_.usage(kPrice);
    EXPECT_EQ(usage.model_load, Millis(0));
    EXPECT_EQ(usage.inference, Millis(4'000));
    EXPECT_EQ(usage.model_loads, 0);
}

TEST_F(UsageMeterTest, ASingleStepTellsNothingOfLoading) {
    start(0);
    execute("4", 0);
    step("4", 1, 3);
    step("4", 1, 4);
    finish(5);
    EXPECT_EQ(meter_.usage(kPrice).model_load, Millis(0));
}

TEST_F(UsageMeterTest, TheFirstStepIsTakenOnce) {
    start(0);
    execute("4", 0);
    EXPECT_FALSE(meter_.take_first_step());
    step("8", 1, 1);  // not the node that runs
    step("4", 0, 1);
    EXPECT_FALSE(meter_.take_first_step());
    step("4", 1, 1);
    EXPECT_TRUE(meter_.take_first_step());
    step("4", 2, 2);
    EXPECT_FALSE(meter_.take_first_step());
}

TEST_F(UsageMeterTest, AFailedRunUsedTheGpuToo) {
    start(0);
    execute("1", 1);
    comfy::ExecutionError error;
    error.exception_type = "torch.OutOfMemoryError";
    meter_.apply(error, 4);
    finish(9);
    const auto usage = meter_.usage(kPrice);
    EXPECT_EQ(usage.gpu, Millis(4'000));
    EXPECT_EQ(usage.model_load, Millis(3'000));
}

TEST_F(UsageMeterTest, TheWorkersOwnTimeCountsMore) {
    meter_.started(5);
    meter_.started(7);
    meter_.ended(9);
    meter_.ended(11);
    EXPECT_EQ(meter_.usage(kPrice).gpu, Millis(4'000));
    meter_.ran(Millis(3'500));
    EXPECT_EQ(meter_.usage(kPrice).gpu, Millis(3'500));
    EXPECT_EQ(UsageMeter(json::object()).usage(kPrice).gpu, Millis(0));
}

TEST_F(UsageMeterTest, TheLargestReadingWhileItRanIsThePeak) {
    comfy::SystemStats stats;
    stats.vram_total = 100;
    stats.vram_free = 10;
    stats.ram_total = 50;
    stats.ram_free = 40;
    meter_.sample(stats);
    start(0);
    EXPECT_EQ(meter_.usage(kPrice).vram_peak_bytes, std::nullopt);
    for (const std::uint64_t free : {70U, 30U, 60U}) {
        stats.vram_free = free;
        meter_.sample(stats);
    }
    stats.vram_total = 0;
    meter_.sample(stats);
    finish(1);
    stats.vram_total = 1'000;
    meter_.sample(stats);
    EXPECT_EQ(meter_.usage(kPrice).vram_peak_bytes, 70U);
    EXPECT_EQ(meter_.usage(kPrice).ram_peak_bytes, 10U);
    EXPECT_EQ(meter_.usage(kPrice).gpu_percent, std::nullopt);
}

TEST_F(UsageMeterTest, TheMemoryOfOtherProcessesIsNotTheJobs) {
    const auto monitor = [](UsageMeter& meter) {
        const auto data = json::parse_object(R"({"gpus": [{"vram_used": 95}]})");
        meter.apply(comfy::Unknown{"crystools.monitor", "", *data}, 1);
    };
    comfy::SystemStats stats;
    stats.vram_total = 100;
    stats.vram_free = 10;
    start(0);
    meter_.sample(stats);
    EXPECT_EQ(meter_.usage(kPrice).vram_peak_bytes, 90U) << "it has told of the GPU alone so far";
    for (const std::uint64_t free : {9U, 2U, 5U}) {
        stats.torch_vram_total = 30;
        stats.torch_vram_free = free;
        meter_.sample(stats);
    }
    monitor(meter_);
    EXPECT_EQ(meter_.usage(kPrice).vram_peak_bytes, 28U);

    UsageMeter neighbour(json::object(), true);
    neighbour.started(0);
    stats.torch_vram_total = 0;
    neighbour.sample(stats);
    monitor(neighbour);
    EXPECT_EQ(neighbour.usage(kPrice).vram_peak_bytes, std::nullopt);
    stats.torch_vram_total = 100;  // of a machine without a GPU: the whole of it
    neighbour.sample(stats);
    EXPECT_EQ(neighbour.usage(kPrice).vram_peak_bytes, std::nullopt);
    stats.torch_vram_total = 30;
    neighbour.sample(stats);
    EXPECT_EQ(neighbour.usage(kPrice).vram_peak_bytes, 25U);
}

TEST_F(UsageMeterTest, ReadsWhatAMonitorPackReports) {
    const auto tell = [this](const char* data) {
        meter_.apply(comfy::Unknown{"crystools.monitor", "", *json::parse_object(data)}, 1);
    };
    tell(R"({"cpu_utilization": 100})");
    start(0);
    tell(
        R"({"cpu_utilization": 10, "ram_used": 500, "gpus": [{"gpu_utilization": 90, "vram_used": 700}]})"
    );
    tell(
        R"({"cpu_utilization": 20.1, "ram_used": 400, "gpus": [{"gpu_utilization": 95, "vram_used": -1}]})"
    );
    tell(R"({"cpu_utilization": -1, "ram_used": "much", "gpus": [7]})");
    tell(R"({"gpus": {}})");
    finish(2);
    const auto usage = meter_.usage(kPrice);
    EXPECT_EQ(usage.cpu_percent, 15.1);
    EXPECT_EQ(usage.gpu_percent, 92.5);
    EXPECT_EQ(usage.ram_peak_bytes, 500U);
    EXPECT_EQ(usage.vram_peak_bytes, 700U);
}

class AttemptUsageTest : public FleetTest {
protected:
    void start_priced(support::DoubleOptions options = {}) {
        comfy_ =
            std::make_unique<support::ComfyDouble>(double_thread_.context(), std::move(options));
        comfy_->start();
        make_bare_fleet();
        on_core([&] {
            WorkerConfig config{"gpu", comfy_->url()};
            config.gpu_second_usd = kPrice;
            EXPECT_TRUE(fleet_->add_comfyui(std::move(config)));
            fleet_->start();
        });
        ASSERT_TRUE(wait_for_status(jobs::WorkerStatus::idle));
    }
};

const char* const kSampled = R"({
    "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
    "2": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["1", 1], "text": "a cat"}},
    "3": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
    "4": {"class_type": "KSampler", "inputs": {"model": ["1", 0], "positive": ["2", 0],
          "negative": ["2", 0], "latent_image": ["3", 0], "seed": 1, "steps": 4, "cfg": 7,
          "sampler_name": "euler", "scheduler": "normal", "denoise": 1}},
    "5": {"class_type": "VAEDecode", "inputs": {"samples": ["4", 0], "vae": ["1", 2]}},
    "6": {"class_type": "SaveImage", "inputs": {"images": ["5", 0], "filename_prefix": "cat"}}})";

TEST_F(AttemptUsageTest, ARunTellsWhatItUsed) {
    start_priced({.delay = Millis(60)});
    auto made = begin(assignment(kSampled));
    const auto result = end(*made);
    ASSERT_TRUE(result) << result.error().message;
    const auto usage = made->recorder.usage();
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->images, 1);
    EXPECT_EQ(usage->models, 1);
    EXPECT_EQ(usage->model_loads, 1);
    EXPECT_GT(usage->gpu, Millis(0));
    EXPECT_EQ(usage->gpu, usage->model_load + usage->inference);
    EXPECT_EQ(usage->gpu_second_usd, kPrice);
    EXPECT_DOUBLE_EQ(usage->cost_usd, jobs::cost_of(*usage));
    EXPECT_GT(usage->cost_usd, 0);
}

TEST_F(AttemptUsageTest, TheMachineIsLookedAtWhileItIsBusy) {
    options_.health_interval = std::chrono::hours(1);  // the look at the first step must do
    options_.busy_look = Millis(0);
    start_priced({.delay = Millis(200)});
    // An answer that comes after the run does not count.
    EXPECT_TRUE(support::wait_until([&] {
        auto made = begin(assignment(kSampled));
        EXPECT_TRUE(end(*made));
        const auto usage = made->recorder.usage().value_or(jobs::Usage());
        return usage.vram_peak_bytes == 25'274'793'984U - 21'463'220'224U &&
               usage.ram_peak_bytes == usage.vram_peak_bytes;
    }));
}

TEST_F(AttemptUsageTest, WhatOthersHaveOnTheGpuIsLeftOut) {
    options_.health_interval = std::chrono::hours(1);
    options_.busy_look = Millis(0);
    start_priced({.delay = Millis(200), .vram_own = 2'700'000'000, .vram_others = 18'000'000'000});
    EXPECT_TRUE(support::wait_until([&] {
        auto made = begin(assignment(kSampled));
        EXPECT_TRUE(end(*made));
        return made->recorder.usage().value_or(jobs::Usage()).vram_peak_bytes == 2'700'000'000U;
    }));
}

TEST_F(AttemptUsageTest, AFailedRunTellsToo) {
    start_priced({.delay = Millis(100)});
    auto made = begin(assignment(picture_with("oom")));
    EXPECT_FALSE(end(*made));
    const auto usage = made->recorder.usage();
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->images, 0);
    EXPECT_EQ(usage->models, 0);
    EXPECT_GT(usage->gpu, Millis(0));
}

TEST_F(AttemptUsageTest, WhatTheWorkerRefusedUsedNothing) {
    start_priced();
    auto made = begin(assignment(R"({"1": {"class_type": "SaveImage", "inputs": {}}})"));
    EXPECT_FALSE(end(*made));
    EXPECT_FALSE(made->recorder.usage());
}

TEST_F(AttemptUsageTest, AWorkerThatTellsOfItsStepsIsNotAskedForItsQueue) {
    options_.poll_interval = options_.poll_interval_slow = Millis(250);
    start_priced({.delay = Millis(600)});
    // On a busy machine messages may be late.
    EXPECT_TRUE(support::wait_until([&] {
        const auto before = comfy_->executions().asked_meanwhile["/queue"];
        auto made = begin(assignment(kSampled));
        EXPECT_TRUE(end(*made));
        return comfy_->executions().asked_meanwhile["/queue"] == before;
    }));
}

}  // namespace
}  // namespace comfyd::fleet
