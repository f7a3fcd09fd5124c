#include "fleet/merged_run.hpp"

#include <gmock/gmock.h>

#include "fleet/test_support.hpp"

namespace comfyd::fleet {
namespace {

using testing::HasSubstr;

const PromptId kMergedId = *PromptId::parse("0192f0c4-0000-7000-8000-0000000000aa");

std::string text_to_image(const std::string& text, int seed) {
    auto prompt = *json::parse_object(R"({
        "3": {"class_type": "KSampler", "inputs": {"seed": 1, "steps": 4, "cfg": 8, "denoise": 1,
              "sampler_name": "euler", "scheduler": "normal", "model": ["4", 0],
              "positive": ["6", 0], "negative": ["7", 0], "latent_image": ["5", 0]}},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "sd15.safetensors"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 64, "batch_size": 1}},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": ""}},
        "7": {"class_type": "CLIPTextEncode", "inputs": {"clip": ["4", 1], "text": "watermark"}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": "SaveImage", "inputs": {"images": ["8", 0], "filename_prefix": "p"}}})"
    );
    prompt.at("6").at("inputs").as_object()["text"] = text;
    prompt.at("3").at("inputs").as_object()["seed"] = seed;
    return json::serialize(prompt);
}

class MergedRunTest : public FleetTest {
protected:
    std::shared_ptr<jobs::RunGroup> group(std::size_t members) {
        return on_core([&] { return fleet_->find("gpu")->make_group(kMergedId, members); });
    }
    jobs::Assignment member(
        std::shared_ptr<jobs::RunGroup> group,
        std::size_t place,
        const std::string& text,
        std::string tenant = "local"
    ) {
        auto made = assignment(text_to_image(text, static_cast<int>(place) + 7));
        made.tenant = std::move(tenant);
        made.extra_data["extra_pnginfo"] = json::object{{"workflow", json::object{{"id", text}}}};
        made.group = std::move(group);
        made.place = place;
        return made;
    }
    std::string picture(const jobs::Output& output, const std::string& tenant) {
        const auto asset = wait(store_->get(tenant, output.asset));
        EXPECT_TRUE(asset);
        return asset ? *wait(store_->read(*asset, 1'000'000)) : "";
    }
};

TEST_F(MergedRunTest, JobsShareARunAndEachHasItsOwnPicture) {
    start({.batch_pack = true});
    auto together = group(3);
    std::vector<std::unique_ptr<Run>> runs;
    const std::vector<std::string> texts{"a dog", "a cat", "a bird"};
    const std::vector<std::string> tenants{"local", "other", "local"};
    for (std::size_t place = 0; place < texts.size(); ++place) {
        runs.push_back(begin(member(together, place, texts[place], tenants[place])));
    }
    together.reset();
    for (std::size_t place = 0; place < runs.size(); ++place) {
        const auto result = end(*runs[place]);
        ASSERT_TRUE(result) << result.error().message;
        ASSERT_EQ(result->outputs.size(), 1U);
        EXPECT_EQ(result->outputs[0].node_id, "9");
        EXPECT_TRUE(result->ui_outputs.contains("9"));
        EXPECT_EQ(result->ui_outputs.size(), 1U);
        const std::string png = picture(result->outputs[0], tenants[place]);
        EXPECT_THAT(png, HasSubstr(texts[place] + " seed " + std::to_string(place + 7)));
        EXPECT_THAT(png, HasSubstr("{\"id\": \"" + texts[place] + "\"}"));
        EXPECT_EQ(runs[place]->recorder.outputs(), 1U);
        const auto progress = runs[place]->recorder.progress();
        ASSERT_FALSE(progress.empty());
        EXPECT_EQ(progress.back().nodes_total, 7);
        EXPECT_LT(progress.back().value, 1);
        ASSERT_TRUE(runs[place]->recorder.usage());
    }
    EXPECT_EQ(comfy_->executions().total, 1U);
    EXPECT_EQ(executions(kMergedId), 1U);
}

TEST_F(MergedRunTest, WhatTheWholeRunTookIsToldOnce) {
    start({.batch_pack = true});
    const auto together = group(3);
    std::vector<std::unique_ptr<Run>> runs;
    for (std::size_t place = 0; place < 3; ++place) {
        runs.push_back(begin(member(together, place, "picture " + std::to_string(place))));
    }
    EXPECT_FALSE(on_core([&] { return together->take_whole(); }));
    Millis parts{};
    for (const auto& run : runs) {
        ASSERT_TRUE(end(*run));
        parts += run->recorder.usage()->gpu;
    }
    const auto whole = on_core([&] { return together->take_whole(); });
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->jobs, 3);
    EXPECT_GE(whole->usage.gpu, parts);
    EXPECT_FALSE(on_core([&] { return together->take_whole(); }));
}

TEST_F(MergedRunTest, WhoLeavesIsNotWaitedFor) {
    start({.batch_pack = true});
    auto together = group(3);
    auto first = begin(member(together, 0, "a dog"));
    auto last = begin(member(together, 2, "a bird"));
    on_core([&] { together->leave(1); });
    for (Run* run : {first.get(), last.get()}) {
        const auto result = end(*run);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(result->outputs.size(), 1U);
    }
    EXPECT_EQ(comfy_->executions().total, 1U);
}

TEST_F(MergedRunTest, WhoIsLeftOverRunsAlone) {
    start({.batch_pack = true});
    auto together = group(2);
    auto first = begin(member(together, 0, "a dog"));
    on_core([&] { together->leave(1); });
    const auto result = end(*first);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(executions(first->assignment.prompt), 1U);
    EXPECT_EQ(executions(kMergedId), 0U);
}

TEST_F(MergedRunTest, ACancelledJobIsDroppedAndTheOthersGoOn) {
    start({.delay = Millis(300), .batch_pack = true});
    auto together = group(2);
    auto first = begin(member(together, 0, "a dog"));
    auto second = begin(member(together, 1, "a cat"));
    ASSERT_TRUE(support::wait_until([&] { return comfy_->executions().total == 1; }));
    stop(*first, Code::cancelled);
    const auto cancelled = end(*first);
    ASSERT_FALSE(cancelled);
    EXPECT_EQ(cancelled.error().code, Code::cancelled);
    const auto result = end(*second);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outputs.size(), 1U);
    EXPECT_THAT(picture(result->outputs[0], "local"), HasSubstr("a cat seed 8"));
    EXPECT_EQ(comfy_->executions().total, 1U);
}

TEST_F(MergedRunTest, WhenAllAreCancelledTheRunIsStopped) {
    start({.delay = Millis(20'000), .batch_pack = true});
    auto together = group(2);
    auto first = begin(member(together, 0, "a dog"));
    auto second = begin(member(together, 1, "a cat"));
    ASSERT_TRUE(support::wait_until([&] { return comfy_->executions().total == 1; }));
    stop(*first, Code::cancelled);
    stop(*second, Code::cancelled);
    EXPECT_FALSE(end(*first));
    const auto last = end(*second);
    ASSERT_FALSE(last);
    EXPECT_EQ(last.error().code, Code::cancelled);
    EXPECT_EQ(comfy_->queue_remaining(), 0U);
}

TEST_F(MergedRunTest, AFailedRunIsRepeatedJobByJob) {
    support::DoubleOptions options{.batch_pack = true};
    options.faults.run.merge_error = true;
    start(std::move(options));
    auto together = group(2);
    auto first = begin(member(together, 0, "a dog"));
    auto second = begin(member(together, 1, "a cat"));
    for (Run* run : {first.get(), second.get()}) {
        const auto result = end(*run);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(result->outputs.size(), 1U);
        EXPECT_EQ(executions(run->assignment.prompt), 1U);
    }
    EXPECT_EQ(executions(kMergedId), 1U);
}

TEST_F(MergedRunTest, WhatCannotBeMergedRunsAlone) {
    start({.batch_pack = true});
    auto together = group(2);
    auto first = begin(member(together, 0, "a dog"));
    auto odd = member(together, 1, "a cat");
    odd.workflow = kPicture;
    auto second = begin(std::move(odd));
    EXPECT_TRUE(end(*first));
    EXPECT_TRUE(end(*second));
    EXPECT_EQ(executions(kMergedId), 0U);
    EXPECT_EQ(comfy_->executions().total, 2U);
}

TEST_F(MergedRunTest, AfterARestartEachFindsItsPartAgain) {
    start({.delay = Millis(300), .batch_pack = true});
    auto together = group(3);
    std::vector<jobs::Assignment> members;
    std::vector<std::unique_ptr<Run>> runs;
    for (std::size_t place = 0; place < 3; ++place) {
        members.push_back(member(together, place, "picture " + std::to_string(place)));
        runs.push_back(begin(members.back()));
    }
    together.reset();
    ASSERT_TRUE(support::wait_until([&] { return comfy_->executions().total == 1; }));
    for (auto& run : runs) {
        stop(*run, Code::shutting_down);
    }
    for (auto& run : runs) {
        const auto result = end(*run);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, Code::shutting_down);
    }
    // The first had ended before; only the others come back.
    auto again = group(3);
    on_core([&] { again->leave(0); });
    for (std::size_t place = 1; place < 3; ++place) {
        members[place].group = again;
        members[place].reattach = true;
        runs[place] = begin(members[place]);
    }
    for (std::size_t place = 1; place < 3; ++place) {
        const auto result = end(*runs[place]);
        ASSERT_TRUE(result) << result.error().message;
        ASSERT_EQ(result->outputs.size(), 1U);
        EXPECT_EQ(result->outputs[0].node_id, "9");
        EXPECT_THAT(
            picture(result->outputs[0], "local"),
            HasSubstr("picture " + std::to_string(place) + " seed")
        );
    }
    EXPECT_EQ(comfy_->executions().total, 1U);
}

TEST_F(MergedRunTest, AWorkerThatForgotTheRunIsGivenEachJobAlone) {
    start({.batch_pack = true});
    auto together = group(2);
    std::vector<std::unique_ptr<Run>> runs;
    for (std::size_t place = 0; place < 2; ++place) {
        auto made = member(together, place, "picture " + std::to_string(place));
        made.reattach = true;
        runs.push_back(begin(std::move(made)));
    }
    for (auto& run : runs) {
        const auto result = end(*run);
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_EQ(executions(run->assignment.prompt), 1U);
    }
}

}  // namespace
}  // namespace comfyd::fleet
