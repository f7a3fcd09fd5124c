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

// The worker still has the file of the one that was removed.
TEST_F(RegisteredModels, OneThatIsRemovedAndAddedAgainHasAnotherNumber) {
    start(1);
    const std::string second = safetensors_file(kSize, "second");
    server_.serve("/one", {.bytes = file_});
    server_.serve("/two", {.bytes = second});
    register_model("ink.safetensors", "/one");
    expect_succeeded(gateway_->submit(workflow_with("ink.safetensors")));
    const std::string path = "/v2/models/checkpoints/ink.safetensors";
    EXPECT_EQ(gateway_->http().del(path).status, 204);
    EXPECT_EQ(gateway_->http().get(path).status, 404);
    EXPECT_EQ(gateway_->http().get("/v2/models").json_at("/models"), json::array());
    gateway_->restart();
    register_model("ink.safetensors", "/two");
    EXPECT_EQ(gateway_->http().get(path).json_at("/versions/0/file"), "ink@2.safetensors");
    ASSERT_TRUE(wait_until([this] { return up() == 2; })) << gateway_->log();
    expect_succeeded(gateway_->submit(workflow_with("ink.safetensors", "the second")));
    EXPECT_EQ(read_file(path_of(0, "ink@2.safetensors")), second);
    EXPECT_EQ(read_file(path_of(0, "ink.safetensors")), file_) << "files on workers stay";
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

// Both use one worker, whose lists say what is on it.
TEST_F(RegisteredModels, WhatATenantHasFromAnAddressNobodyElseSeesOrUses) {
    server_.serve("/secret/mine.safetensors", {.bytes = file_});
    const auto key = [](const std::string& text) { return to_hex(sha256(text)); };
    start(
        1,
        "fetching:\n  addresses: true\n  hosts: [\"" + server_.host() + "\"]\n" +
            "auth:\n  keys:\n    - {name: op, operator: true, sha256: " + key("key-of-op") +
            "}\n    - {name: a, tenant: acme, sha256: " + key("key-of-acme") +
            "}\n    - {name: b, tenant: bolt, sha256: " + key("key-of-bolt") + "}\n"
    );
    const auto as = [](const std::string& text) {
        net::Headers headers;
        headers.set("Authorization", "Bearer " + text);
        return headers;
    };
    const auto ask = [&](const std::string& who, const std::string& path) {
        net::ClientRequest request;
        request.method = "GET";
        request.url = path;
        request.headers = as(who);
        return gateway_->http().send(request);
    };
    const auto submit = [&](const std::string& who, const std::string& model) {
        net::ClientRequest request;
        request.method = "POST";
        request.url = "/api/v2/jobs";
        request.headers = as(who);
        request.body = json::serialize(json::object{{"workflow", workflow_with(model, who)}});
        return gateway_->http().send(request);
    };
    const auto is_done = [&](const Reply& submitted) {
        const std::string path =
            "/api/v2/jobs/" + std::string(submitted.json_at("/id").as_string());
        return wait_until([&] {
            return Comfyd::status_of(ask("key-of-acme", path).json()) == "succeeded";
        });
    };
    const Reply first = submit("key-of-acme", server_.url("/secret/mine.safetensors"));
    ASSERT_LT(first.status, 300) << first.body;
    ASSERT_TRUE(is_done(first)) << gateway_->log();
    std::string name;
    for (const auto& entry : fs::directory_iterator(path_of(0, ""))) {
        const std::string folder = entry.path().filename();
        name = folder.starts_with("from-") ? folder + "/mine.safetensors" : name;
    }
    ASSERT_FALSE(name.empty());
    for (const char* path :
         {"/object_info",
          "/object_info/CheckpointLoaderSimple",
          "/models/checkpoints",
          "/experiment/models/checkpoints",
          "/v2/models"}) {
        const Reply shown = ask("key-of-bolt", path);
        EXPECT_EQ(shown.status, 200) << path;
        EXPECT_THAT(shown.body, Not(HasSubstr("from-"))) << path;
    }
    const Reply stolen = submit("key-of-bolt", name);
    EXPECT_EQ(stolen.status, 422) << stolen.body;
    const Reply wrong = submit("key-of-bolt", "nobody-has-this.safetensors");
    EXPECT_THAT(wrong.body, Not(HasSubstr("from-")));
    const Reply again = submit("key-of-acme", name);
    ASSERT_LT(again.status, 300) << again.body;
    EXPECT_TRUE(is_done(again)) << gateway_->log();
    EXPECT_EQ(fetches("/secret/mine.safetensors"), 1U);
}

TEST_F(RegisteredModels, ADiskWithLessRoomThanAModelNeedsIsNotAsked) {
    start(1);
    server_.serve("/huge", {.bytes = file_});
    register_model("huge.safetensors", "/huge", {{"bytes", 900'000'000'000'000}});
    const std::string id = gateway_->submit(workflow_with("huge.safetensors"));
    const std::string path = "/v2/workflows/execution/" + id + "/explain";
    std::string told;
    EXPECT_TRUE(wait_until([&] {
        told = gateway_->http().get(path).body;
        return told.find("disk") != std::string::npos;
    })) << told;
    EXPECT_THAT(told, HasSubstr("w0"));
    EXPECT_EQ(Comfyd::status_of(gateway_->job(id)), "queued");
    EXPECT_EQ(fetches("/huge"), 0U);
}

TEST_F(RegisteredModels, AWorkerWhoseMemoryDoesNotHoldTheModelIsAskedLast) {
    double_arguments_of_first_ = "--ram-bytes 2000000";
    start(2);
    server_.serve("/new", {.bytes = file_});
    register_model("new.safetensors", "/new", {{"bytes", file_.size()}});
    expect_succeeded(gateway_->submit(workflow_with("new.safetensors")));
    EXPECT_FALSE(fs::exists(path_of(0, "new.safetensors")));
    EXPECT_TRUE(fs::exists(path_of(1, "new.safetensors")));
    // Without the other one it may try.
    EXPECT_EQ(gateway_->http().post_json("/admin/v1/workers/w1/drain", {}).status, 200);
    expect_succeeded(gateway_->submit(workflow_with("new.safetensors", "a dog")));
    EXPECT_TRUE(fs::exists(path_of(0, "new.safetensors")));
}

TEST_F(RegisteredModels, OddNamesLeadNowhereInNoDialect) {
    server_.serve("/new", {.bytes = file_});
    start(
        1,
        "fetching:\n  addresses: true\n  properties: true\n  hosts: [\"" + server_.host() + "\"]\n"
    );
    const std::string up = "../../../../../../../../";
    const std::vector<std::string> names{
        up + "tmp/a.safetensors",
        "..",
        "a/../../b.safetensors",
        "/etc/passwd.safetensors",
        "\\\\host\\share\\a.safetensors",
        "C:\\a.safetensors",
        std::string("a\0b.safetensors", 15),
        "a\nb\tc.safetensors",
        std::string(100'000, 'x') + ".safetensors",
        "\u202e\ufeff/\U0001F600.safetensors",
        ".hidden.safetensors",
        "from-" + std::string(32, '0') + "/a.safetensors",
        "a@2.safetensors",
        server_.url("/new/" + up + "a.safetensors?x=../.."),
        server_.url("/%2e%2e%2f%2e%2e%2fa.safetensors"),
        server_.url("/%00a.safetensors"),
        "upload:" + std::string(64, '0'),
        "s3://bucket/a.safetensors",
    };
    for (const std::string& name : names) {
        const json::object graph = workflow_with(name);
        for (const auto& [path, body] :
             {std::pair<std::string, json::object>{"/api/v2/jobs", {{"workflow", graph}}},
              {"/prompt", {{"prompt", graph}}},
              {"/v2/workflows/validate", {{"workflow", graph}}},
              {"/v2/workflows/plan", {{"workflow", graph}}}}) {
            const Reply reply = gateway_->http().post_json(path, body);
            EXPECT_LT(reply.status, 500) << path << " " << name.substr(0, 64) << reply.body;
        }
        const std::string place = "checkpoints/" + net::percent_encode(name);
        const json::object version{{"source", server_.url("/new")}};
        const Reply made = put(place, version);
        // Odd, and names all the same.
        const bool is_good = name.starts_with("\u202e") || name.starts_with("from-");
        EXPECT_EQ(made.status == 201, is_good) << name.substr(0, 64) << made.body;
        EXPECT_LT(made.status, 500) << name.substr(0, 64) << made.body;
        EXPECT_LT(gateway_->http().get("/v2/models/" + place).status, 500);
    }
    expect_succeeded(gateway_->submit(support::text_to_image("it goes on")));
    for (const auto& entry : fs::recursive_directory_iterator(
             fs::path(agents_[0]->comfyui()), fs::directory_options::skip_permission_denied
         )) {
        const std::string path = entry.path().string();
        EXPECT_TRUE(
            !path.ends_with(".safetensors") || path.starts_with(path_of(0, "").string()) ||
            path.find("/models/") != std::string::npos
        ) << path;
    }
    EXPECT_FALSE(fs::exists("/tmp/a.safetensors"));
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
