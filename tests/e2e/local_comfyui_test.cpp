// `comfyd serve --comfyui DIR`: the real binary starts the real agents, and these a ComfyUI whose
// main.py is the double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "support/comfyd.hpp"
#include "support/model_server.hpp"

namespace comfyd::support {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class LocalComfyUi : public testing::Test {
protected:
    LocalComfyUi() {
        folder_.write(
            "ComfyUI/main.py",
            "import os, sys\n"
            "words = sys.argv[1:]\n"
            "port = words[words.index('--port') + 1]\n"
            "os.execv('" COMFY_DOUBLE
            "', ['comfy-double', '--listen', '127.0.0.1:' + port, '--journal', '" +
                journal() + "'])\n"
        );
        folder_.write("ComfyUI/nodes.py", "");
        folder_.write("ComfyUI/comfy/__init__.py", "");
        // What comfyd looks for in the Python that is to run ComfyUI.
        for (const char* module : {"torch", "aiohttp", "yaml"}) {
            folder_.write("modules/" + std::string(module) + ".py", "");
        }
    }
    // No process of it stays.
    ~LocalComfyUi() override {
        if (comfyd_) {
            if (!comfyd_->process().running()) {
                comfyd_->start();
            }
            EXPECT_EQ(resize(0).status, 200);
            EXPECT_TRUE(wait_until([&] { return machines().empty(); }, kLong)) << comfyd_->log();
        }
    }

    void start(int processes) {
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments =
                {"--no-engine",
                 "--comfyui",
                 folder_ / "ComfyUI",
                 "--set",
                 "comfyui.gpus=any",
                 "--set",
                 "comfyui.per_gpu=" + std::to_string(processes),
                 "--set",
                 "comfyui.ports=" + ports()},
            .environment = {{"PYTHONPATH", folder_ / "modules"}},
        });
    }
    // Of this process alone: those of the double can be shared, and other tests run beside it.
    static std::string ports() {
        const int first = 10'000 + ::getpid() % 1'000 * 20;
        return std::to_string(first) + "-" + std::to_string(first + 19);
    }
    Reply resize(int size) {
        net::ClientRequest request;
        request.method = "PUT";
        request.url = "/admin/v1/fleet/pools/default";
        request.body = json::serialize(json::object{{"size", size}});
        request.headers.set("Content-Type", "application/json");
        return comfyd_->http().send(std::move(request));
    }
    std::size_t ready() {
        std::size_t count = 0;
        const json::value fleet = comfyd_->http().get("/admin/v1/fleet").json();
        for (const json::value& pool : fleet.at("pools").as_array()) {
            for (const json::value& instance : pool.at("instances").as_array()) {
                count += instance.at("state") == "ready" ? 1 : 0;
            }
        }
        return count;
    }
    // Names of their folders.
    std::set<std::string> machines() const {
        std::set<std::string> names;
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(comfyd_->data() + "/machines", error)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("comfyd-")) {
                names.insert(name);
            }
        }
        return names;
    }
    std::string journal() const { return folder_ / "journal"; }
    std::size_t starts() const {
        const std::string text = read_file(journal());
        std::size_t count = 0;
        for (auto at = text.find("start"); at != std::string::npos;
             at = text.find("start", at + 1)) {
            ++count;
        }
        return count;
    }

    static constexpr std::chrono::seconds kLong{120};
    TempDir folder_;
    std::unique_ptr<Comfyd> comfyd_;
};

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
