// `comfyd serve --comfyui DIR`: the real binary starts the real agents, and these a ComfyUI whose
// main.py is the double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <set>

#include "local_comfyui_support.hpp"
#include "support/model_server.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

TEST_F(LocalComfyUi, IsStartedUsedAndStopped) {
    start(2);
    ASSERT_TRUE(wait_until([&] { return ready() == 2; }, kLong)) << comfyd_->log();
    EXPECT_EQ(machines().size(), 2U);
    const auto job = comfyd_->wait_finished(comfyd_->submit(text_to_image("a fox")));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    ASSERT_EQ(resize(1).status, 200);
    EXPECT_TRUE(wait_until([&] { return machines().size() == 1; }, kLong));
    const auto later = comfyd_->wait_finished(comfyd_->submit(text_to_image("another fox")));
    EXPECT_EQ(Comfyd::status_of(later), "succeeded") << json::serialize(later);
}

TEST_F(LocalComfyUi, GoesOnWithItsPromptWhileComfydIsKilled) {
    start(1);
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    const auto before = machines();
    const std::string id = comfyd_->submit(text_to_image("a slow fox", "slow=3000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 1; }));
    comfyd_->restart();
    const auto job = comfyd_->wait_finished(id, kLong);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    EXPECT_EQ(starts(), 1U) << "it was run once";
    EXPECT_EQ(machines(), before) << "by the process that was there";
}

// Five crashes are enough for its agent, which says so: nobody waits for its silence to be long.
TEST_F(LocalComfyUi, OneThatCrashesAgainAndAgainIsGivenUpAtOnce) {
    start(1);
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    std::ofstream(broken()) << "yes";
    ::kill(pid(), SIGKILL);
    const auto why = [&] { return comfyd_->http().get("/admin/v1/fleet/events?limit=100").body; };
    ASSERT_TRUE(
        wait_until([&] { return why().find("its ComfyUI failed: ") != std::string::npos; }, kLong)
    ) << comfyd_->log();
    EXPECT_THAT(why(), HasSubstr("no kernel image; it ended 5 times"));
    std::filesystem::remove(broken());
    EXPECT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << "another";
}

TEST_F(LocalComfyUi, WhatThisComputerCannotBeIsRefusedAtOnce) {
    start(1, {"--set", "comfyui.arguments=--cpu"});
    // From then on it is known what there is.
    const auto job = comfyd_->wait_finished(comfyd_->submit(text_to_image("a fox")), kLong);
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    const auto ask = [&](json::object wish) {
        wish["workflow"] = text_to_image("a fox");
        return comfyd_->http().post_json("/v2/workflows/execute", wish);
    };
    const Reply nowhere = ask({{"region", "mars"}});
    EXPECT_EQ(nowhere.status, 400) << nowhere.body;
    EXPECT_EQ(nowhere.json_at("/error/code"), "no_capable_worker");
    const Reply none = ask({{"gpu_requirements", {{"gpu_type", "RTX 4090"}}}});
    EXPECT_EQ(none.status, 400) << none.body;
    EXPECT_EQ(none.json_at("/error/code"), "no_capable_worker");
}

TEST_F(LocalComfyUi, ModelsOfATemplateAreThereBeforeItsMachinesAreReady) {
    ModelServer server;
    const std::string file = safetensors_file(1'500'000);
    server.serve("/a", {.bytes = file});
    comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
        .arguments =
            {"--no-engine",
             "--config",
             folder_.write(
                 "comfyd.yaml",
                 "providers:\n"
                 "  local: {kind: process, dir: " +
                     folder_ / "ComfyUI" + ", gpus: any, per_gpu: 2, ports: " + ports() +
                     "}\n"
                     "pools:\n"
                     "  - name: default\n"
                     "    size: 2\n"
                     "    offers: [{provider: local}]\n"
                     "    template:\n"
                     "      env: {COMFYD_MODELS_TRUSTED: '" +
                     server.host() +
                     "'}\n"
                     "      models:\n"
                     "        - {folder: checkpoints, name: new/a.safetensors, source: '" +
                     server.url("/a") + "'}\n"
             )},
        .environment = {{"PYTHONPATH", folder_ / "modules"}},
    });
    ASSERT_TRUE(wait_until([&] { return ready() == 2; }, kLong)) << comfyd_->log();
    EXPECT_EQ(read_file(folder_ / "ComfyUI/models/checkpoints/new/a.safetensors"), file);
    // Both have it, and one has fetched it; the other asked at most whether it is still the same.
    std::size_t fetches = 0;
    for (const SeenRequest& request : server.seen()) {
        fetches += request.headers.contains("If-None-Match") ? 0 : 1;
    }
    EXPECT_EQ(fetches, 1U);
}

TEST_F(LocalComfyUi, AMachineThatStartsFetchesWhatJobsWaitFor) {
    const std::string hold = folder_ / "hold";
    const std::string models = folder_ / "ComfyUI/models";
    folder_.write(
        "ComfyUI/main.py",
        "import os, sys, time\n"
        "while os.path.exists('" +
            hold +
            "'): time.sleep(0.05)\n"
            "words = sys.argv[1:]\n"
            "port = words[words.index('--port') + 1]\n"
            "os.execv('" COMFY_DOUBLE
            "', ['comfy-double', '--listen', '127.0.0.1:' + port, "
            "'--models', '" +
            models + "'])\n"
    );
    ModelServer server;
    const std::string file = safetensors_file(1'500'000);
    server.serve("/late", {.bytes = file});
    comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
        .arguments =
            {"--no-engine",
             "--config",
             folder_.write(
                 "comfyd.yaml",
                 "providers:\n"
                 "  local: {kind: process, dir: " +
                     folder_ / "ComfyUI" + ", gpus: any, per_gpu: 2, ports: " + ports() +
                     "}\n"
                     "pools:\n"
                     "  - name: default\n"
                     "    size: 1\n"
                     "    offers: [{provider: local}]\n"
                     "    template: {env: {COMFYD_MODELS_TRUSTED: '" +
                     server.host() + "'}}\n"
             )},
        .environment = {{"PYTHONPATH", folder_ / "modules"}},
    });
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    // What its machines can run is known from now on.
    ASSERT_EQ(
        Comfyd::status_of(comfyd_->wait_finished(comfyd_->submit(text_to_image("a fox")), kLong)),
        "succeeded"
    );
    ASSERT_EQ(resize(0).status, 200);
    ASSERT_TRUE(wait_until([&] { return ready() == 0; }, kLong));
    net::ClientRequest request;
    request.method = "PUT";
    request.url = "/v2/models/checkpoints/late.safetensors";
    request.body = json::serialize(json::object{{"source", server.url("/late")}});
    request.headers.set("Content-Type", "application/json");
    ASSERT_EQ(comfyd_->http().send(std::move(request)).status, 201);
    json::object workflow = text_to_image("a fox that is late");
    workflow["4"].as_object()["inputs"].as_object()["ckpt_name"] = "late.safetensors";
    const std::string id = comfyd_->submit(workflow);
    folder_.write("hold", "");
    ASSERT_EQ(resize(1).status, 200);
    EXPECT_TRUE(wait_until(
        [&] { return read_file(models + "/checkpoints/late.safetensors") == file; }, kLong
    )) << comfyd_->log();
    EXPECT_EQ(ready(), 0U) << "its ComfyUI is not up yet";
    std::filesystem::remove(hold);
    const auto job = comfyd_->wait_finished(id, kLong);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
}

TEST_F(LocalComfyUi, AFolderThatIsNoneIsRefusedWithWhatToDo) {
    Process process(
        {COMFYD_BINARY,
         "serve",
         "--listen",
         "127.0.0.1:0",
         "--data",
         folder_ / "data",
         "--comfyui",
         folder_ / "modules"}
    );
    EXPECT_NE(process.wait().value_or(0), 0);
    EXPECT_THAT(process.errors(), HasSubstr("main.py"));
}

}  // namespace
}  // namespace comfyd::support
