// The models of `comfyd worker`: fetched before ComfyUI starts and while it runs, whatever happens
// meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/crypto.hpp"
#include "support/agent.hpp"
#include "support/model_server.hpp"

namespace comfyd {
namespace {

namespace fs = std::filesystem;

using support::AgentProcess;
using support::ModelServer;
using support::Process;
using support::ProcessOptions;
using support::read_file;
using support::Reply;
using support::safetensors_file;
using support::wait_until;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::string hash_of(const std::string& bytes) {
    return to_hex(sha256(bytes));
}

class AgentModels : public testing::Test {
protected:
    static constexpr std::size_t kSize = 3'000'000;

    support::AgentOptions options(const json::array& models) {
        return {
            .environment =
                {
                    {"COMFYD_MODELS", json::serialize(models)},
                    {"COMFYD_MODELS_TRUSTED", server_.host()},
                    {"COMFYD_MODELS_TOKENS", server_.host() + "=secret-of-the-server"},
                    {"HF_ENDPOINT", server_.url()},
                }
        };
    }
    json::object model(const std::string& name, const std::string& path, json::object more = {}) {
        more["folder"] = "checkpoints";
        more["name"] = name;
        more["source"] = server_.url(path);
        return more;
    }
    static fs::path path_of(AgentProcess& agent, const std::string& name) {
        return fs::path(agent.comfyui()) / "models" / "checkpoints" / name;
    }
    static bool has_begun(AgentProcess& agent) {
        return fs::exists(agent.folder() + "/started.json");
    }
    // How one of its models is.
    static json::value shown(AgentProcess& agent, const std::string& name) {
        const json::value all = agent.http().get("/worker/v1/models").json_at("/models");
        if (all.is_array()) {
            for (const json::value& one : all.get_array()) {
                if (one.at("name") == json::value(name)) {
                    return one;
                }
            }
        }
        return json::object{{"state", "unknown"}};
    }
    static bool is(AgentProcess& agent, const std::string& name, const char* state) {
        return wait_until([&] { return shown(agent, name).at("state") == json::value(state); });
    }
    // Of its list of files: the hash of one.
    static std::string listed(AgentProcess& agent, const std::string& name) {
        const json::value files = agent.http().get("/worker/v1/files").json_at("/files");
        for (const json::value& file : files.get_array()) {
            if (file.at("name") == json::value(name)) {
                return file.at("sha256").is_string() ? std::string(file.at("sha256").get_string())
                                                     : "not known yet";
            }
        }
        return "";
    }
    // The most that any part in its cache has.
    static std::uint64_t part_bytes(AgentProcess& agent) {
        std::uint64_t most = 0;
        std::error_code gone;
        for (const auto& entry : fs::directory_iterator(agent.folder() + "/models", gone)) {
            if (entry.path().extension() == ".part") {
                most = std::max<std::uint64_t>(most, entry.file_size(gone));
            }
        }
        return most;
    }

    ModelServer server_;
    std::string file_ = safetensors_file(kSize);
};

TEST_F(AgentModels, ComfyUiStartsOnceThoseThatItNeedsAreThere) {
    server_.serve("/a", {.bytes = file_, .stall_after = 2'500'000});
    server_.serve("/b", {.bytes = file_});
    server_.serve("/never", {.bytes = "", .status = 500});
    AgentProcess agent(options(
        {model("a.safetensors", "/a?signature=hidden-2"),
         model("sub/b.safetensors", "/b", {{"sha256", hash_of(file_)}}),
         model("c.safetensors", "/never", {{"required", false}})}
    ));
    EXPECT_TRUE(agent.wait_for("fetching"));
    EXPECT_TRUE(is(agent, "sub/b.safetensors", "ready"));
    EXPECT_TRUE(wait_until([&] { return shown(agent, "a.safetensors").at("bytes") != 0; }));
    const json::value status = agent.status();
    EXPECT_THAT(std::string(status.at("reason").get_string()), HasSubstr("1 of 2 models"));
    EXPECT_EQ(status.at("models").at("wanted"), 3);
    EXPECT_EQ(status.at("models").at("ready"), 1);
    EXPECT_FALSE(has_begun(agent));
    for (const char* path : {"/prompt", "/health"}) {
        const Reply refused = agent.http().get(path);
        EXPECT_EQ(refused.status, 503) << path;
        EXPECT_THAT(refused.body, HasSubstr("1 of 2 models")) << path;
    }
    EXPECT_FALSE(fs::exists(path_of(agent, "a.safetensors")));
    server_.release();
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    EXPECT_EQ(read_file(path_of(agent, "a.safetensors")), file_);
    EXPECT_EQ(read_file(path_of(agent, "sub/b.safetensors")), file_);
    EXPECT_EQ(listed(agent, "a.safetensors"), hash_of(file_));
    const json::value a = shown(agent, "a.safetensors");
    EXPECT_EQ(a.at("dtype"), "U8");
    EXPECT_EQ(a.at("bytes"), file_.size());
    for (const std::string& text :
         {agent.log(),
          agent.http().get("/worker/v1/models").body,
          read_file(agent.folder() + "/started.json")}) {
        EXPECT_THAT(text, Not(HasSubstr("secret-of-the-server")));
        EXPECT_THAT(text, Not(HasSubstr("hidden-2")));
    }
}

TEST_F(AgentModels, AKillInTheMiddleCostsOnlyWhatWasNotWritten) {
    server_.serve("/a", {.bytes = file_, .stall_after = 2'500'000});
    AgentProcess agent(options({model("a.safetensors", "/a")}));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(wait_until([&] { return part_bytes(agent) >= 2'000'000; })) << agent.log();
        agent.process().kill(SIGKILL);
        agent.process().wait();
        EXPECT_FALSE(fs::exists(path_of(agent, "a.safetensors")));
        EXPECT_FALSE(fs::exists(agent.folder() + "/models/" + hash_of(file_)));
        agent.start();
        EXPECT_TRUE(wait_until([&] { return server_.seen("/a").size() == 2 + i; }));
    }
    server_.release();
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    EXPECT_EQ(read_file(path_of(agent, "a.safetensors")), file_);
    EXPECT_EQ(listed(agent, "a.safetensors"), hash_of(file_));
    const auto seen = server_.seen("/a");
    EXPECT_THAT(std::string(seen[1].headers.get("Range")), MatchesRegex("bytes=2......-"));
    EXPECT_EQ(seen[1].headers.get("If-Range"), "\"v1\"");
    EXPECT_EQ(part_bytes(agent), 0u);
    // And what is there is there.
    agent.process().kill(SIGKILL);
    agent.process().wait();
    agent.start();
    ASSERT_TRUE(agent.wait_for("ready"));
    EXPECT_EQ(listed(agent, "a.safetensors"), hash_of(file_));
}

TEST_F(AgentModels, OneMoreComesWhileItRuns) {
    server_.serve("/a", {.bytes = file_});
    AgentProcess agent(options({}));
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    const pid_t comfyui = agent.comfyui_pid();
    EXPECT_EQ(agent.http().get("/worker/v1/models").json_at("/models"), json::array());
    const json::object wanted = model("new/a.safetensors", "/a");
    const Reply asked = agent.http().post_json("/worker/v1/models", wanted);
    EXPECT_EQ(asked.status, 202) << asked.body;
    EXPECT_TRUE(is(agent, "new/a.safetensors", "ready"));
    EXPECT_EQ(listed(agent, "new/a.safetensors"), hash_of(file_));
    EXPECT_EQ(agent.http().post_json("/worker/v1/models", wanted).status, 200);
    EXPECT_EQ(agent.comfyui_pid(), comfyui);
    EXPECT_EQ(server_.seen().size(), 1u);

    EXPECT_EQ(agent.http().post("/worker/v1/models", "[").status, 422);
    EXPECT_EQ(
        agent.http().post_json("/worker/v1/models", model("../../a.safetensors", "/a")).status, 422
    );
    EXPECT_EQ(agent.http().post_json("/worker/v1/models", model("a.py", "/a")).status, 422);
    EXPECT_GE(agent.http().post_json("/worker/v1/models", model("a.ckpt", "/a")).status, 400);
    support::Http stranger(agent.url());
    EXPECT_EQ(stranger.post_json("/worker/v1/models", wanted).status, 401);
    EXPECT_EQ(stranger.get("/worker/v1/models").status, 401);
    EXPECT_EQ(server_.seen().size(), 1u);

    json::object missing = model("b.safetensors", "/b");
    EXPECT_EQ(agent.http().post_json("/worker/v1/models", missing).status, 202);
    EXPECT_TRUE(is(agent, "b.safetensors", "failed"));
    server_.serve("/b", {.bytes = file_});
    EXPECT_EQ(agent.http().post_json("/worker/v1/models", missing).status, 202);
    EXPECT_TRUE(is(agent, "b.safetensors", "ready"));
    EXPECT_EQ(agent.state(), "ready");
}

TEST_F(AgentModels, OneThatCannotBeHadSaysSoAndMayComeFromElsewhere) {
    AgentProcess agent(options({model("a.safetensors", "/gone")}));
    ASSERT_TRUE(agent.wait_for("failed"));
    const std::string reason(agent.status().at("reason").get_string());
    EXPECT_THAT(reason, HasSubstr("checkpoints/a.safetensors"));
    EXPECT_THAT(reason, HasSubstr("404"));
    EXPECT_FALSE(has_begun(agent));
    server_.serve("/there", {.bytes = file_});
    EXPECT_EQ(
        agent.http().post_json("/worker/v1/models", model("a.safetensors", "/there")).status, 202
    );
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    EXPECT_EQ(read_file(path_of(agent, "a.safetensors")), file_);
}

TEST_F(AgentModels, AnAgentThatFetchesEndsAtOnce) {
    server_.serve("/a", {.bytes = file_, .stall_after = 1'500'000});
    AgentProcess agent(options({model("a.safetensors", "/a")}));
    EXPECT_TRUE(wait_until([&] { return part_bytes(agent) >= 1'000'000; }));
    EXPECT_EQ(agent.process().stop(), 0);
    EXPECT_FALSE(fs::exists(path_of(agent, "a.safetensors")));
    EXPECT_GE(part_bytes(agent), 1'000'000u);
}

TEST_F(AgentModels, WhatIsWrongIsToldAtTheStart) {
    const auto told = [&](const std::string& name, const std::string& value) {
        support::TempDir folder;
        folder.write("ComfyUI/main.py", "");
        Process agent(ProcessOptions{
            .arguments =
                {COMFYD_BINARY,
                 "worker",
                 "--listen",
                 "127.0.0.1:0",
                 "--folder",
                 folder / "worker",
                 "--comfyui",
                 folder / "ComfyUI"},
            .environment = {{name, value}, {"COMFYD_WORKER_TOKEN", support::kAgentToken}}
        });
        EXPECT_EQ(agent.wait(), 2) << name << "=" << value;
        return agent.errors() + agent.output();
    };
    EXPECT_THAT(told("COMFYD_MODELS", "[{}]"), HasSubstr("COMFYD_MODELS"));
    EXPECT_THAT(told("COMFYD_MODELS", "/nowhere/models.json"), HasSubstr("COMFYD_MODELS"));
    EXPECT_THAT(
        told(
            "COMFYD_MODELS",
            R"([{"folder":"checkpoints","name":"a.ckpt","source":"https://example.com/a"}])"
        ),
        HasSubstr("COMFYD_MODELS_PICKLES")
    );
    EXPECT_THAT(told("COMFYD_MODELS_CACHE_GB", "many"), HasSubstr("COMFYD_MODELS_CACHE_GB"));
    EXPECT_THAT(told("COMFYD_MODELS_TRUSTED", "http://a/b"), HasSubstr("COMFYD_MODELS_TRUSTED"));
    const std::string tokens = told("COMFYD_MODELS_TOKENS", "secret-without-a-host");
    EXPECT_THAT(tokens, HasSubstr("COMFYD_MODELS_TOKENS"));
    EXPECT_THAT(tokens, Not(HasSubstr("secret-without")));
    EXPECT_THAT(told("HF_ENDPOINT", "nonsense"), HasSubstr("HF_ENDPOINT"));
}

}  // namespace
}  // namespace comfyd
