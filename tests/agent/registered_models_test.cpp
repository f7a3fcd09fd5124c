// Models that jobs name and no worker has: the gateway has agents fetch them, as they are
// registered, and the jobs wait.
#include <signal.h>

#include "registered_models_support.hpp"

namespace comfyd::models_e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(RegisteredModels, AJobWaitsUntilAWorkerHasFetchedItsModel) {
    start(1);
    const json::object body{{"workflow", workflow_with("new.safetensors")}};
    const Reply unknown = gateway_->http().post_json("/api/v2/jobs", body);
    EXPECT_EQ(unknown.status, 422) << unknown.body;
    server_.serve("/new", {.bytes = file_, .stall_after = 2'500'000});
    register_model(
        "new.safetensors", "/new", {{"sha256", to_hex(sha256(file_))}, {"bytes", file_.size()}}
    );
    const std::string id = gateway_->submit(workflow_with("new.safetensors"));
    const std::string other = gateway_->submit(support::text_to_image("needs no new model"));
    // It holds up nobody, and tells how far it is.
    expect_succeeded(other);
    std::string shown;
    EXPECT_TRUE(wait_until([&] {
        shown = json::serialize(gateway_->job(id));
        return shown.find("preparing: w0 fetches new.safetensors, 1 MB of 3 MB") !=
               std::string::npos;
    })) << shown;
    EXPECT_EQ(Comfyd::status_of(gateway_->job(id)), "queued");
    EXPECT_FALSE(fs::exists(path_of(0, "new.safetensors")));
    // Nobody who gives up idle machines takes it for one.
    const Reply scale = gateway_->http().get("/v2/pools/default/scale");
    EXPECT_EQ(scale.json_at("/workers/0/running"), json::value(1)) << scale.body;
    server_.release();
    expect_succeeded(id);
    EXPECT_EQ(read_file(path_of(0, "new.safetensors")), file_);
    expect_succeeded(gateway_->submit(workflow_with("new.safetensors", "a dog")));
    EXPECT_EQ(fetches("/new"), 1U);
}

TEST_F(RegisteredModels, WhatIsNotToBeHadFailsTheJobWithItsCause) {
    start(1);
    server_.serve("/gone", {.bytes = "", .status = 404});
    server_.serve("/other", {.bytes = file_});
    server_.serve("/short", {.bytes = file_.substr(0, 1'000'000)});
    register_model("gone.safetensors", "/gone");
    register_model("other.safetensors", "/other", {{"sha256", std::string(64, 'a')}});
    register_model("short.safetensors", "/short");
    for (const auto& [name, cause] :
         {std::pair{"gone.safetensors", "model_unavailable"},
          std::pair{"other.safetensors", "model_damaged"},
          std::pair{"short.safetensors", "model_damaged"}}) {
        const json::value job = finished(gateway_->submit(workflow_with(name)));
        EXPECT_EQ(Comfyd::status_of(job), "failed") << name;
        const std::string shown = json::serialize(job);
        EXPECT_THAT(shown, HasSubstr(std::string("checkpoints/") + name)) << gateway_->log();
        EXPECT_FALSE(fs::exists(path_of(0, name)));
        const std::string id(job.at("id").as_string());
        EXPECT_THAT(
            gateway_->http().get("/api/v2/dead-letters/" + id).body,
            HasSubstr("\"cause\":\"" + std::string(cause) + "\"")
        );
    }
    expect_succeeded(gateway_->submit(support::text_to_image("others go on")));
}

TEST_F(RegisteredModels, ANameMeansTheVersionThatIsCurrentWhenTheJobIsAccepted) {
    start(1);
    const std::string second = safetensors_file(kSize, "second");
    server_.serve("/one", {.bytes = file_});
    server_.serve("/two", {.bytes = second, .stall_after = 1'000});
    register_model("ink.safetensors", "/one");
    expect_succeeded(gateway_->submit(workflow_with("ink.safetensors")));
    register_model("ink.safetensors", "/two");
    const std::string waiting = gateway_->submit(workflow_with("ink.safetensors", "the second"));
    const Reply back =
        gateway_->http().post_json("/v2/models/checkpoints/ink.safetensors/rollback", {});
    EXPECT_EQ(back.status, 200) << back.body;
    EXPECT_EQ(back.json_at("/current"), 1);
    expect_succeeded(gateway_->submit(workflow_with("ink.safetensors", "the first again")));
    server_.release();
    expect_succeeded(waiting);
    EXPECT_EQ(read_file(path_of(0, "ink.safetensors")), file_);
    EXPECT_EQ(read_file(path_of(0, "ink@2.safetensors")), second);
    expect_succeeded(gateway_->submit(workflow_with("ink@2.safetensors", "by its number")));
    gateway_->restart();
    EXPECT_EQ(
        gateway_->http().get("/v2/models/checkpoints/ink.safetensors").json_at("/current"), 1
    );
}

TEST_F(RegisteredModels, AGatewayThatIsKilledGoesOnAfterwards) {
    start(2);
    server_.serve("/slow", {.bytes = file_, .stall_after = 1'000'000});
    register_model("slow.safetensors", "/slow");
    const std::string id = gateway_->submit(workflow_with("slow.safetensors"));
    ASSERT_TRUE(wait_until([&] { return fetches("/slow") > 0; }));
    gateway_->kill();
    server_.release();
    gateway_->start();
    expect_succeeded(id);
}

TEST_F(RegisteredModels, AnAgentThatIsKilledGoesOnWhereItWas) {
    start(1);
    server_.serve("/cut", {.bytes = file_, .stall_after = 2'500'000});
    register_model("cut.safetensors", "/cut", {{"sha256", to_hex(sha256(file_))}});
    const std::string id = gateway_->submit(workflow_with("cut.safetensors"));
    ASSERT_TRUE(wait_until([&] {
        return json::serialize(gateway_->job(id)).find("1 MB of 3 MB") != std::string::npos;
    })) << json::serialize(gateway_->job(id))
        << agents_[0]->http().get("/worker/v1/models").body;
    EXPECT_FALSE(fs::exists(path_of(0, "cut.safetensors")));
    const std::string listen = agents_[0]->url();
    agents_[0]->process().kill(SIGKILL);
    agents_[0]->process().wait();
    server_.release();
    // It has another port now, and the same files.
    agents_[0]->start();
    gateway_->stop();
    const std::string file = folder_.write(
        "comfyd.yaml",
        "fleet: {poll_ms: 100}\nworkers:\n  - {id: w0, url: '" + agents_[0]->url() +
            "', token: " + support::kAgentToken + "}\n"
    );
    gateway_->start();
    expect_succeeded(id);
    EXPECT_EQ(read_file(path_of(0, "cut.safetensors")), file_);
}

TEST_F(RegisteredModels, StrangersMayNameAddressesOnlyWhereTheOperatorSaysSo) {
    server_.serve("/a/mine.safetensors", {.bytes = file_});
    start(1);
    const std::string address = server_.url("/a/mine.safetensors");
    const Reply refused =
        gateway_->http().post_json("/api/v2/jobs", {{"workflow", workflow_with(address)}});
    EXPECT_EQ(refused.status, 422) << refused.body;
    EXPECT_EQ(fetches("/a/mine.safetensors"), 0U);
}

TEST_F(RegisteredModels, AnAddressInALoaderIsFetchedUnderANameOfItsOwn) {
    server_.serve("/a/mine.safetensors", {.bytes = file_});
    start(1, "fetching:\n  addresses: true\n  hosts: [\"" + server_.host() + "\"]\n");
    const std::string address = server_.url("/a/mine.safetensors");
    expect_succeeded(gateway_->submit(workflow_with(address)));
    EXPECT_FALSE(fs::exists(path_of(0, "mine.safetensors"))) << "another tenant may mean its own";
    std::size_t found = 0;
    for (const auto& entry : fs::directory_iterator(path_of(0, ""))) {
        const std::string name = entry.path().filename();
        found += name.starts_with("from-") && fs::exists(entry.path() / "mine.safetensors") ? 1 : 0;
    }
    EXPECT_EQ(found, 1U);
    for (const char* odd :
         {"http://169.254.169.254/latest/a.safetensors",
          "https://elsewhere.example/a.safetensors",
          "file:///etc/passwd.safetensors"}) {
        const Reply refused =
            gateway_->http().post_json("/api/v2/jobs", {{"workflow", workflow_with(odd)}});
        EXPECT_EQ(refused.status, 422) << odd << refused.body;
    }
}

TEST_F(RegisteredModels, AnOperatorsListIsAskedLast) {
    server_.serve("/list", {.bytes = file_});
    const std::string list = folder_.write(
        "model-list.json",
        json::serialize(json::object{
            {"models",
             json::array{json::object{
                 {"name", "Listed"},
                 {"type", "checkpoint"},
                 {"save_path", "default"},
                 {"filename", "listed.safetensors"},
                 {"url", server_.url("/list")},
                 {"size", "3MB"}
             }}}
        })
    );
    start(1, "fetching: {list: '" + list + "'}\n");
    expect_succeeded(gateway_->submit(workflow_with("listed.safetensors")));
    EXPECT_EQ(fetches("/list"), 1U);
}

TEST_F(RegisteredModels, ManyAgentsHaveOneFileAndItsSourceSendsItOnce) {
    constexpr std::size_t kAgents = 4;
    start(kAgents);
    server_.serve("/one", {.bytes = file_});
    register_model(
        "one.safetensors", "/one", {{"sha256", to_hex(sha256(file_))}, {"bytes", file_.size()}}
    );
    std::set<std::string> drained;
    for (std::size_t i = 0; i < kAgents; ++i) {
        const std::string id =
            gateway_->submit(workflow_with("one.safetensors", "picture " + std::to_string(i)));
        expect_succeeded(id);
        for (std::size_t at = 0; at < kAgents; ++at) {
            const std::string worker = "w" + std::to_string(at);
            if (fs::exists(path_of(at, "one.safetensors")) && drained.insert(worker).second) {
                EXPECT_EQ(read_file(path_of(at, "one.safetensors")), file_);
                const std::string path = "/admin/v1/workers/" + worker + "/drain";
                EXPECT_EQ(gateway_->http().post_json(path, {}).status, 200);
            }
        }
        EXPECT_EQ(drained.size(), i + 1);
    }
    std::string logs;
    for (const auto& agent : agents_) {
        logs += agent->log();
    }
    EXPECT_EQ(fetches("/one"), 1U) << logs;
    // What an agent gives away it gives to those with a ticket alone.
    const std::string content = "/worker/v1/contents/" + to_hex(sha256(file_));
    support::Http stranger(agents_[0]->url());
    EXPECT_EQ(stranger.get(content).status, 401);
    EXPECT_EQ(
        stranger.get(content + "?until=99999999999&ticket=" + std::string(64, 'a')).status, 401
    );
    EXPECT_THAT(gateway_->log() + agents_[1]->log(), Not(HasSubstr(support::kAgentToken)));
}

TEST_F(RegisteredModels, AFreeWorkerFetchesWhatABusyOneHas) {
    double_arguments_ = "--delay-ms 4000";
    start(2);
    server_.serve("/hot", {.bytes = file_});
    register_model("hot.safetensors", "/hot", {{"bytes", file_.size()}});
    expect_succeeded(gateway_->submit(workflow_with("hot.safetensors")));
    const bool is_first = fs::exists(path_of(0, "hot.safetensors"));
    const std::size_t other = is_first ? 1 : 0;
    // Each runs for as long as the first, and several fetches would fit into their wait.
    std::vector<std::string> ids;
    for (int i = 0; i < 4; ++i) {
        ids.push_back(gateway_->submit(workflow_with("hot.safetensors", "slow " + std::to_string(i))
        ));
    }
    EXPECT_TRUE(wait_until([&] { return fs::exists(path_of(other, "hot.safetensors")); }))
        << gateway_->log();
    for (const std::string& id : ids) {
        expect_succeeded(id);
    }
}

TEST_F(RegisteredModels, AFileOfAnotherKindIsFoundBeforeItRuns) {
    start(1);
    server_.serve(
        "/lora", {.bytes = safetensors_file(1'000, "lora_unet_down_blocks_0.lora_down.weight")}
    );
    register_model("not-a-checkpoint.safetensors", "/lora");
    const json::value job =
        finished(gateway_->submit(workflow_with("not-a-checkpoint.safetensors")));
    EXPECT_EQ(Comfyd::status_of(job), "failed");
    EXPECT_THAT(json::serialize(job), HasSubstr("the file is a lora"));
    EXPECT_FALSE(fs::exists(path_of(0, "not-a-checkpoint.safetensors")));
}

TEST_F(RegisteredModels, AWaitingJobIsCancelledLikeAnyOther) {
    start(1);
    server_.serve("/slow", {.bytes = file_, .stall_after = 1'000});
    register_model("slow.safetensors", "/slow");
    const std::string id = gateway_->submit(workflow_with("slow.safetensors"));
    ASSERT_TRUE(wait_until([&] { return fetches("/slow") > 0; }));
    const Reply cancelled = gateway_->http().post_json("/api/v2/jobs/" + id + "/cancel", {});
    EXPECT_LT(cancelled.status, 300) << cancelled.body;
    EXPECT_TRUE(gateway_->wait_status(id, "canceled"));
    EXPECT_EQ(gateway_->stop(), 0) << "it ends though a fetch is under way";
}

TEST_F(RegisteredModels, TenantsReadTheRegisterAndOperatorsChangeIt) {
    server_.serve("/new", {.bytes = file_});
    const auto key = [](const std::string& text) { return to_hex(sha256(text)); };
    start(
        1,
        "auth:\n  keys:\n    - {name: op, operator: true, sha256: " + key("key-of-the-operator") +
            "}\n    - {name: a, tenant: acme, sha256: " + key("key-of-acme") +
            "}\n    - {name: b, tenant: bolt, sha256: " + key("key-of-bolt") + "}\n"
    );
    const auto as = [](const std::string& text) {
        net::Headers headers;
        headers.set("Authorization", "Bearer " + text);
        return headers;
    };
    net::ClientRequest request;
    request.method = "PUT";
    request.url = "/v2/models/checkpoints/new.safetensors";
    request.body = json::serialize(json::object{{"source", server_.url("/new?signature=hidden")}});
    request.headers = as("key-of-acme");
    EXPECT_EQ(gateway_->http().send(request).status, 403);
    request.headers = as("key-of-the-operator");
    EXPECT_EQ(gateway_->http().send(request).status, 201);
    for (const char* name : {"key-of-acme", "key-of-bolt"}) {
        request.method = "GET";
        request.body.clear();
        request.headers = as(name);
        const Reply shown = gateway_->http().send(request);
        EXPECT_EQ(shown.status, 200);
        EXPECT_THAT(shown.body, Not(HasSubstr("sources")));
        const std::string id =
            gateway_->submit(workflow_with("new.safetensors", name), {}, as(name));
        EXPECT_TRUE(wait_until([&] {
            request.url = "/api/v2/jobs/" + id;
            const bool is_done =
                Comfyd::status_of(gateway_->http().send(request).json()) == "succeeded";
            request.url = "/v2/models/checkpoints/new.safetensors";
            return is_done;
        })) << gateway_->log();
    }
    EXPECT_EQ(fetches("/new"), 1U) << "one file for both";
    EXPECT_THAT(gateway_->log(), Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace comfyd::models_e2e
