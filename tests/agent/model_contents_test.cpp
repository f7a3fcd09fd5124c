// What is known of models by what is in them, and models that the gateway itself has or gives links
// to: files that operators upload, objects of a bucket, workers that fetch before they are up.
#include <signal.h>

#include "registered_models_support.hpp"

namespace comfyd::models_e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ModelContents : public RegisteredModels {
protected:
    // The gateway with more settings, at the same address.
    void restart_with(const std::string& more) {
        std::string config = "fleet: {poll_ms: 100}\nworkers:\n";
        for (std::size_t i = 0; i < agents_.size(); ++i) {
            config += "  - {id: w" + std::to_string(i) + ", url: '" + agents_[i]->url() +
                      "', token: " + support::kAgentToken + "}\n";
        }
        folder_.write("comfyd.yaml", config + "public_url: '" + gateway_->url() + "'\n" + more);
        gateway_->stop();
        start_again();
    }
    void kill_and_start() {
        gateway_->kill();
        start_again();
    }
    void start_again() {
        const std::size_t before = up();
        gateway_->start();
        EXPECT_TRUE(wait_until([&] { return up() == before + agents_.size(); }));
    }
    Reply upload(
        const std::string& sha256,
        std::string bytes,
        const std::string& range = {},
        const std::string& query = {}
    ) {
        net::ClientRequest request;
        request.method = "PUT";
        request.url = "/v2/model-contents/" + sha256 + query;
        request.body = std::move(bytes);
        request.headers.set("Content-Type", "application/octet-stream");
        if (!range.empty()) {
            request.headers.set("Content-Range", range);
        }
        return gateway_->http().send(std::move(request));
    }
    // Uploads it and registers it.
    void give(const std::string& path, const std::string& bytes) {
        const std::string hash = to_hex(sha256(bytes));
        const Reply sent = upload(hash, bytes);
        EXPECT_EQ(sent.status, 201) << sent.body;
        const Reply made = put(path, {{"source", "upload:" + hash}});
        EXPECT_EQ(made.status, 201) << made.body;
    }
    static json::object with_lora(const std::string& checkpoint, const std::string& lora) {
        json::object graph = workflow_with(checkpoint);
        graph["10"] = {
            {"class_type", "LoraLoader"},
            {"inputs",
             {{"lora_name", lora},
              {"strength_model", 1.0},
              {"strength_clip", 1.0},
              {"model", json::array{"4", 0}},
              {"clip", json::array{"4", 1}}}}
        };
        graph["3"].as_object()["inputs"].as_object()["model"] = json::array{"10", 0};
        return graph;
    }
};

TEST_F(ModelContents, ALoraForAnotherFamilyIsRefusedBeforeAnythingIsFetched) {
    start(1);
    restart_with("");
    give("checkpoints/wide.safetensors", support::checkpoint_file(2048));
    give("loras/narrow.safetensors", support::lora_file(768));
    give("loras/fitting.safetensors", support::lora_file(2048));
    // Who asked before both are known would have a job, and its files fetched.
    for (const auto& [path, family] :
         {std::pair("loras/narrow.safetensors", "sd15"),
          std::pair("checkpoints/wide.safetensors", "sdxl")}) {
        std::string shown;
        EXPECT_TRUE(wait_until([&] {
            const Reply now = gateway_->http().get(std::string("/v2/models/") + path);
            shown = now.body;
            return now.json_at("/versions/0/family") == json::value(family);
        })) << shown;
    }
    const json::object wrong = with_lora("wide.safetensors", "narrow.safetensors");
    const char* kWhy =
        "'narrow.safetensors' is a LoRA for sd15, and 'wide.safetensors' is of the family sdxl";
    const auto refused = [&] {
        return gateway_->http().post_json("/api/v2/jobs", {{"workflow", wrong}});
    };
    EXPECT_TRUE(wait_until([&] { return refused().status == 422; })) << refused().body;
    EXPECT_THAT(refused().body, HasSubstr(kWhy));
    // In ComfyUI's own words, at the node.
    const Reply prompt = gateway_->http().post_json("/prompt", {{"prompt", wrong}});
    EXPECT_EQ(prompt.status, 400) << prompt.body;
    EXPECT_EQ(prompt.json_at("/node_errors/10/errors/0/type"), "custom_validation_failed");
    EXPECT_THAT(prompt.body, HasSubstr(kWhy));
    const Reply judged =
        gateway_->http().post_json("/v2/workflows/validate", {{"workflow", wrong}});
    EXPECT_THAT(judged.body, HasSubstr(kWhy));
    EXPECT_FALSE(fs::exists(path_of(0, "wide.safetensors"))) << "nothing was fetched for that";
    expect_succeeded(gateway_->submit(with_lora("wide.safetensors", "fitting.safetensors")));
    // What is known outlives a restart.
    kill_and_start();
    EXPECT_TRUE(wait_until([&] { return refused().status == 422; })) << refused().body;
    restart_with("fetching: {unfit: warn}\n");
    const std::string id = gateway_->submit(wrong);
    expect_succeeded(id);
}

TEST_F(ModelContents, WhatAnAgentHasReadIsKnownForGood) {
    start(1);
    const std::string checkpoint = support::checkpoint_file(768);
    const std::string lora = support::lora_file(2048);
    server_.serve("/base", {.bytes = checkpoint});
    server_.serve("/lora", {.bytes = lora});
    register_model("base.safetensors", "/base", {{"sha256", to_hex(sha256(checkpoint))}});
    const json::object about{{"source", server_.url("/lora")}, {"sha256", to_hex(sha256(lora))}};
    EXPECT_EQ(put("loras/wide.safetensors", about).status, 201);
    const json::object wrong = with_lora("base.safetensors", "wide.safetensors");
    // Nobody has seen it yet: what is not known is allowed.
    expect_succeeded(gateway_->submit(wrong));
    const auto status = [&] {
        return gateway_->http().post_json("/api/v2/jobs", {{"workflow", wrong}}).status;
    };
    EXPECT_TRUE(wait_until([&] { return status() == 422; }));
    kill_and_start();
    EXPECT_TRUE(wait_until([&] { return status() == 422; }));
    const Reply plan = gateway_->http().post_json(
        "/v2/workflows/plan", {{"workflow", workflow_with("base.safetensors")}}
    );
    EXPECT_THAT(plan.body, HasSubstr("\"size_source\":\"file\"")) << plan.body;
}

TEST_F(ModelContents, AnUploadedFileGoesToWhoeverNeedsIt) {
    start(1);
    restart_with("");
    const std::string hash = to_hex(sha256(file_));
    const std::string total = "/" + std::to_string(file_.size());
    // In parts, with a kill between two of them.
    const std::size_t half = 1'000'000;
    EXPECT_EQ(upload(hash, file_.substr(0, half), "bytes 0-999999" + total).status, 202);
    kill_and_start();
    const Reply begun = gateway_->http().get("/v2/model-contents/" + hash);
    EXPECT_EQ(begun.json_at("/state"), "partial") << begun.body;
    EXPECT_EQ(begun.json_at("/bytes"), half);
    const Reply gap = upload(hash, file_.substr(half + 1, 9), "bytes 1000001-1000009" + total);
    EXPECT_EQ(gap.status, 409) << gap.body;
    const Reply early = put("checkpoints/own.safetensors", {{"source", "upload:" + hash}});
    EXPECT_EQ(early.status, 400) << early.body;
    const Reply whole = upload(
        hash, file_.substr(half), "bytes 1000000-" + std::to_string(file_.size() - 1) + total
    );
    EXPECT_EQ(whole.status, 201) << whole.body;
    EXPECT_EQ(upload(hash, file_).status, 200) << "it is there";
    EXPECT_EQ(put("checkpoints/own.safetensors", {{"source", "upload:" + hash}}).status, 201);
    expect_succeeded(gateway_->submit(workflow_with("own.safetensors")));
    EXPECT_EQ(read_file(path_of(0, "own.safetensors")), file_);
    // Nobody has it without a ticket, and it stays as long as it is needed.
    support::Http stranger(gateway_->url());
    const std::string bytes = "/v2/model-contents/" + hash + "/bytes";
    EXPECT_EQ(stranger.get(bytes).status, 401);
    EXPECT_EQ(
        stranger.get(bytes + "?until=99999999999&ticket=" + std::string(64, 'a')).status, 401
    );
    net::ClientRequest removal;
    removal.method = "DELETE";
    removal.url = "/v2/model-contents/" + hash;
    EXPECT_EQ(gateway_->http().send(removal).status, 409);
    removal.url = "/v2/models/checkpoints/own.safetensors";
    EXPECT_EQ(gateway_->http().send(removal).status, 204);
    removal.url = "/v2/model-contents/" + hash;
    EXPECT_EQ(gateway_->http().send(removal).status, 204);
    EXPECT_EQ(gateway_->http().send(removal).status, 404);
    EXPECT_THAT(gateway_->log() + agents_[0]->log(), Not(HasSubstr("ticket=")));
    const Reply metrics = gateway_->http().get("/metrics");
    EXPECT_TRUE(wait_until([&] {
        return gateway_->http()
                   .get("/metrics")
                   .body.find("comfyd_model_bytes_fetched{source=\"outside\"} 3") !=
               std::string::npos;
    })) << metrics.body;
    const Reply workers = gateway_->http().get("/admin/v1/workers");
    EXPECT_THAT(workers.body, HasSubstr("\"model_bytes_fetched\":{\"outside\":3"));
}

TEST_F(ModelContents, TheCommandUploadsInPartsAndRegisters) {
    start(1);
    const std::string large = safetensors_file(40'000'000);
    const std::string hash = to_hex(sha256(large));
    const std::string path = folder_.write("large.safetensors", large);
    EXPECT_EQ(
        upload(hash, large.substr(0, 5), "bytes 0-4/" + std::to_string(large.size())).status, 202
    );
    for (int i = 0; i < 2; ++i) {  // the second time it is there
        support::Process command(
            {COMFYD_BINARY,
             "models",
             "add",
             "checkpoints/large.safetensors",
             "--upload",
             path,
             "--url",
             gateway_->url()}
        );
        EXPECT_EQ(command.wait(), 0);
    }
    const Reply shown = gateway_->http().get("/v2/models/checkpoints/large.safetensors");
    EXPECT_EQ(shown.json_at("/versions/0/sha256"), json::value(hash)) << shown.body;
    EXPECT_EQ(shown.json_at("/versions/1"), json::value()) << "the same again is nothing new";
    support::Process refused(
        {COMFYD_BINARY,
         "models",
         "add",
         "checkpoints/none.safetensors",
         "--upload",
         folder_ / "nowhere",
         "--url",
         gateway_->url()}
    );
    EXPECT_NE(refused.wait(), 0);
}

TEST_F(ModelContents, WhatIsUploadedIsLookedAt) {
    start(1);
    const std::string hash = to_hex(sha256(file_));
    const Reply wrong = upload(hash, support::lora_file(768));
    EXPECT_EQ(wrong.status, 409) << wrong.body;
    EXPECT_THAT(wrong.body, HasSubstr("hash_mismatch"));
    const std::string odd = "this is no safetensors file, whatever it says of itself";
    const std::string odd_hash = to_hex(sha256(odd));
    EXPECT_EQ(upload(odd_hash, odd).status, 409);
    EXPECT_EQ(gateway_->http().get("/v2/model-contents/" + odd_hash).status, 404);
    EXPECT_EQ(upload(odd_hash, odd, {}, "?format=other").status, 201);
    EXPECT_EQ(upload(odd_hash, odd, {}, "?format=pickle").status, 400);
    for (const char* range :
         {"bytes 5-4/10", "bytes 0-9/5", "bytes a-b/c", "0-1/2", "bytes 0-/9", "bytes */9"}) {
        EXPECT_EQ(upload(hash, "x", range).status, 400) << range;
    }
    for (const char* name : {"..%2f..%2fetc%2fpasswd", "ABC", ""}) {
        EXPECT_THAT(upload(name, "x").status, ::testing::AnyOf(400, 404, 405)) << name;
    }
    EXPECT_EQ(upload(hash, "x", "bytes 0-0/18446744073709551615").status, 400)
        << "more than any disk has";
    // Of a bucket that no store has nothing is registered.
    EXPECT_EQ(
        put("checkpoints/a.safetensors", {{"source", "s3://nobodys/a.safetensors"}}).status, 400
    );
}

TEST_F(ModelContents, TenantsUploadNoModels) {
    const auto key = [](const std::string& text) { return to_hex(sha256(text)); };
    start(
        0,
        "auth:\n  keys:\n    - {name: op, operator: true, sha256: " + key("key-of-the-operator") +
            "}\n    - {name: a, tenant: acme, sha256: " + key("key-of-acme") + "}\n"
    );
    const std::string hash = to_hex(sha256(file_));
    for (const auto& [text, status] :
         {std::pair{"key-of-acme", 403},
          std::pair{"of-nobody", 401},
          std::pair{"", 401},
          std::pair{"key-of-the-operator", 201}}) {
        net::ClientRequest request;
        request.method = "PUT";
        request.url = "/v2/model-contents/" + hash;
        request.body = file_;
        request.headers.set("Content-Type", "application/octet-stream");
        request.headers.set("Authorization", "Bearer " + std::string(text));
        EXPECT_EQ(gateway_->http().send(request).status, status) << text;
        request.method = "GET";
        request.body.clear();
        EXPECT_EQ(gateway_->http().send(request).status, status == 201 ? 200 : status) << text;
        request.url += "/bytes";
        EXPECT_EQ(gateway_->http().send(request).status, 401) << text;
    }
}

TEST_F(ModelContents, AnObjectOfABucketIsFetchedByALinkAndNoKeyLeavesTheGateway) {
    start(1);
    restart_with(
        "stores:\n  - {name: depot, provider: s3, bucket: my-models, endpoint: '" + server_.url() +
        "', style: path, access_key: AKIAEXAMPLE, secret_key: secret-of-the-bucket, "
        "prefix: elsewhere}\n"
    );
    server_.serve("/my-models/base/one.safetensors", {.bytes = file_, .stall_after = 2'000'000});
    const json::object about{
        {"source", "s3://my-models/base/one.safetensors"}, {"sha256", to_hex(sha256(file_))}
    };
    EXPECT_EQ(put("checkpoints/one.safetensors", about).status, 201);
    const std::string id = gateway_->submit(workflow_with("one.safetensors"));
    ASSERT_TRUE(wait_until([&] { return fetches("/my-models/base/one.safetensors") > 0; }))
        << gateway_->log() << agents_[0]->log();
    const auto seen = server_.seen("/my-models/base/one.safetensors");
    EXPECT_THAT(seen.front().target, HasSubstr("X-Amz-Signature="));
    EXPECT_THAT(seen.front().target, HasSubstr("X-Amz-Expires=3600"));
    server_.release();
    expect_succeeded(id);
    EXPECT_EQ(read_file(path_of(0, "one.safetensors")), file_);
    const std::string agent = agents_[0]->log() + agents_[0]->http().get("/worker/v1/models").body;
    EXPECT_THAT(agent, HasSubstr("s3://my-models/base/one.safetensors"));
    EXPECT_THAT(
        agent + gateway_->log(),
        ::testing::AllOf(Not(HasSubstr("secret-of-the-bucket")), Not(HasSubstr("X-Amz-Signature")))
    );
}

TEST_F(ModelContents, TwentyAgentsThatComeUpHaveOneFileFromOneAnother) {
    constexpr std::size_t kAgents = 20;
    constexpr std::size_t kKilled = 3;
    server_.serve("/gate", {.bytes = file_, .stall_after = 1'000});
    server_.serve_in_turn("/one", {{.bytes = file_, .stall_after = 1'500'000}, {.bytes = file_}});
    // All but the first wait for something else before their ComfyUI starts.
    std::string config = "fleet: {poll_ms: 100}\nworkers:\n";
    for (std::size_t i = 0; i < kAgents; ++i) {
        AgentOptions options;
        options.environment = {{"COMFYD_MODELS_TRUSTED", server_.host()}};
        if (i > 0) {
            options.environment["COMFYD_MODELS"] = json::serialize(json::array{json::object{
                {"folder", "vae"}, {"name", "gate.safetensors"}, {"source", server_.url("/gate")}
            }});
        }
        agents_.push_back(std::make_unique<AgentProcess>(std::move(options)));
        config += "  - {id: w" + std::to_string(i) + ", url: '" + agents_.back()->url() +
                  "', token: " + support::kAgentToken + "}\n";
    }
    gateway_ = std::make_unique<Comfyd>(support::ComfydOptions{
        .arguments = {"--no-engine", "--config", folder_.write("comfyd.yaml", config)}
    });
    ASSERT_TRUE(wait_until([this] { return up() == 1; })) << gateway_->log();
    EXPECT_EQ(gateway_->http().post_json("/admin/v1/workers/w0/drain", {}).status, 200);
    register_model(
        "one.safetensors", "/one", {{"sha256", to_hex(sha256(file_))}, {"bytes", file_.size()}}
    );
    const std::string id = gateway_->submit(workflow_with("one.safetensors"));
    // One of them brings it, and dies in the middle of it.
    const auto fetching = [&]() -> std::size_t {
        for (std::size_t i = 1; i < kAgents; ++i) {
            const std::string log = agents_[i]->process().running()
                                        ? agents_[i]->http().get("/worker/v1/models").body
                                        : "";
            if (log.find("one.safetensors") != std::string::npos) {
                return i;
            }
        }
        return 0;
    };
    ASSERT_TRUE(wait_until([&] { return fetching() != 0; })) << gateway_->log();
    std::set<std::size_t> killed{fetching()};
    ASSERT_TRUE(wait_until([&] { return fetches("/one") == 1; })) << "the others wait for it";
    for (std::size_t i = 1; killed.size() < kKilled; ++i) {
        killed.insert(i);
    }
    for (const std::size_t i : killed) {
        agents_[i]->process().kill(SIGKILL);
        agents_[i]->process().wait();
    }
    std::size_t there = 0;
    EXPECT_TRUE(wait_until(
        [&] {
            there = 0;
            for (std::size_t i = 1; i < kAgents; ++i) {
                there += fs::exists(path_of(i, "one.safetensors")) ? 1 : 0;
            }
            return there == kAgents - 1 - killed.size();
        },
        std::chrono::seconds(90)
    )) << there
       << gateway_->log();
    for (std::size_t i = 1; i < kAgents; ++i) {
        const bool is_there = fs::exists(path_of(i, "one.safetensors"));
        EXPECT_NE(is_there, killed.contains(i)) << i;
        if (is_there) {
            EXPECT_EQ(read_file(path_of(i, "one.safetensors")), file_) << i;
        }
    }
    EXPECT_LE(fetches("/one"), 4U) << "its source is asked by few";
    std::uint64_t from_peers = 0;
    for (std::size_t i = 1; i < kAgents; ++i) {
        if (!killed.contains(i)) {
            const json::value told = agents_[i]->status();
            from_peers += told.at("models").at("fetched").at("peers").to_number<std::uint64_t>();
        }
    }
    EXPECT_GE(from_peers, (kAgents - 1 - killed.size() - 3) * file_.size());
    EXPECT_EQ(up(), 1U) << "no ComfyUI of them was up meanwhile";
    EXPECT_EQ(Comfyd::status_of(gateway_->job(id)), "queued");
}

}  // namespace
}  // namespace comfyd::models_e2e
