// `comfyd serve --comfyui DIR` over a folder whose main.py is the double: the real binary starts
// real agents, and these the double.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "support/comfyd.hpp"

namespace comfyd::support {

class LocalComfyUi : public testing::Test {
protected:
    LocalComfyUi() {
        folder_.write(
            "ComfyUI/main.py",
            "import os, sys\n"
            "words = sys.argv[1:]\n"
            "port = words[words.index('--port') + 1]\n"
            "open('" +
                (folder_ / "pid") +
                "', 'w').write(str(os.getpid()))\n"
                "if os.path.exists('" +
                broken() +
                "'): sys.exit('RuntimeError: no kernel image')\n"
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

    void start(int processes, const std::vector<std::string>& more = {}) {
        ComfydOptions options{
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
            .data = folder_ / "data",
        };
        options.arguments.insert(options.arguments.end(), more.begin(), more.end());
        comfyd_ = std::make_unique<Comfyd>(std::move(options));
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
        for (const auto& entry :
             std::filesystem::directory_iterator(comfyd_->data() + "/" + machines_folder_, error)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("comfyd-")) {
                names.insert(name);
            }
        }
        return names;
    }
    std::string journal() const { return folder_ / "journal"; }
    // Of the ComfyUI that was started last.
    pid_t pid() const { return std::stoi(read_file(folder_ / "pid")); }
    // While there is such a file, ComfyUI does not start.
    std::string broken() const { return folder_ / "broken"; }
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
    std::string machines_folder_ = "machines";
    std::unique_ptr<Comfyd> comfyd_;
};

}  // namespace comfyd::support
