// Whose turn it is over a real binary: tiers, the batch class and fairness keys decide the order in
// which a worker gets prompts, also after the server was killed, and `explain` tells why.
#include <gmock/gmock.h>

#include "base/crypto.hpp"
#include "native_support.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Turns : public testing::Test {
protected:
    Turns() {
        const auto key = [](const std::string& name) {
            return "    - {name: " + name + ", sha256: " + to_hex(sha256(key_of(name))) + "}\n";
        };
        const std::string file = folder_.write(
            "comfyd.yaml",
            "auth:\n  keys:\n" + key("plain") + key("gold") +
                "tenants:\n  - {name: gold, tier: enterprise, gpu_seconds_per_day: 1000}\n"
                "models:\n  - {name: sd15.safetensors, bytes: 1.5GB}\n"
        );
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
        worker_->start();
        comfyd_ = std::make_unique<Comfyd>(ComfydOptions{
            .arguments = {"--no-engine", "--worker", worker_->url(), "--config", file}
        });
        EXPECT_TRUE(wait_until([this] {
            return comfyd_->http().get("/object_info", of("gold")).body.size() > 2;
        })) << comfyd_->log();
    }
    ~Turns() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }

    static std::string key_of(const std::string& tenant) {
        return "a long enough key of tenant " + tenant;
    }
    static net::Headers of(const std::string& tenant) {
        return header("Authorization", "Bearer " + key_of(tenant));
    }
    std::string submit(const std::string& tenant, const std::string& text, json::object more = {}) {
        return comfyd_->submit(text_to_image(text), std::move(more), of(tenant));
    }
    json::value job(const std::string& tenant, const std::string& id) {
        return comfyd_->http().get("/api/v2/jobs/" + id, of(tenant)).json();
    }
    // Once it waits in the queue.
    json::object explain(const std::string& tenant, const std::string& id) {
        json::value told;
        EXPECT_TRUE(wait_until([&] {
            told = comfyd_->http()
                       .get("/v2/workflows/execution/" + id + "/explain", of(tenant))
                       .json();
            return told.is_object() && told.get_object().contains("queue_position");
        })) << json::serialize(told);
        return told.is_object() ? told.get_object() : json::object();
    }
    std::vector<std::string> texts_run() {
        std::vector<std::string> texts;
        for (const json::object& prompt : worker_->accepted_prompts()) {
            texts.emplace_back(
                prompt.at("prompt").at("6").at("inputs").at("text").as_string().c_str()
            );
        }
        return texts;
    }

    TempDir folder_;
    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Turns, TiersClassesAndKeysDecideTheOrderAlsoAfterAKill) {
    const std::string blocker =
        comfyd_->submit(text_to_image("blocker", "hang_interruptible"), {}, of("plain"));
    ASSERT_TRUE(wait_until([&] {
        return Comfyd::status_of(job("plain", blocker)) == "running" && texts_run().size() == 1;
    }));
    const std::string batch = submit("gold", "batch", {{"class", "batch"}});
    submit("plain", "a1", {{"fairness_key", "a"}});
    submit("plain", "a2", {{"fairness_key", "a"}});
    const Reply native = comfyd_->http().post_json(
        "/prompt",
        {{"prompt", text_to_image("b1")}, {"extra_data", {{"comfyd", {{"fairness_key", "b"}}}}}},
        of("plain")
    );
    ASSERT_EQ(native.status, 200) << native.body;
    const std::string gold = submit("gold", "gold");

    for (int round = 0; round < 2; ++round) {
        const json::object told = explain("gold", gold);
        EXPECT_EQ(told.at("priority"), 5);
        EXPECT_EQ(told.at("effective_priority"), 10);
        EXPECT_EQ(told.at("class"), "high");
        EXPECT_EQ(told.at("queue_position"), 1);
        EXPECT_EQ(told.at("priority_factors").at(0).at("multiplier").to_number<double>(), 2);
        EXPECT_EQ(told.at("priority_factors").at(4).at("reason"), "enough of the quota is left");
        EXPECT_EQ(explain("gold", batch).at("class"), "batch");
        const std::string b1(native.json_at("/prompt_id").as_string());
        EXPECT_EQ(explain("plain", b1).at("fairness_key"), "b");
        EXPECT_EQ(explain("plain", b1).at("effective_priority"), 5);
        if (round == 0) {
            comfyd_->restart();
        }
    }
    Process command(
        {COMFYD_BINARY, "explain", gold, "--url", comfyd_->url(), "--key", key_of("gold")}
    );
    EXPECT_EQ(command.wait(), 0) << command.errors();
    EXPECT_THAT(command.output(), HasSubstr("priority 10 (asked for: 5)"));
    EXPECT_THAT(command.output(), HasSubstr("tier x 2.00: the tier is enterprise"));

    ASSERT_EQ(
        comfyd_->http().post("/api/v2/jobs/" + blocker + "/cancel", "", of("plain")).status / 100, 2
    );
    ASSERT_TRUE(wait_until([&] { return Comfyd::status_of(job("gold", batch)) == "succeeded"; }))
        << comfyd_->log();
    EXPECT_THAT(texts_run(), ElementsAre("blocker", "gold", "a1", "b1", "a2", "batch"));
}

TEST_F(Turns, APlanKnowsTheSizesThatWereConfigured) {
    const Reply reply = comfyd_->http().post_json(
        "/v2/workflows/plan", {{"workflow", text_to_image("a")}}, of("plain")
    );
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(R"("size_bytes":1500000000,"size_source":"configured")"));
    EXPECT_THAT(reply.body, HasSubstr(R"("vram_source":"estimated")"));
}

TEST_F(Turns, WhatCannotBeIsRefusedByTheNativeDoor) {
    const Reply reply = comfyd_->http().post_json(
        "/prompt",
        {{"prompt", text_to_image("b1")}, {"extra_data", {{"comfyd", {{"class", "high"}}}}}},
        of("plain")
    );
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("'class'"));
}

}  // namespace
}  // namespace comfyd::support
