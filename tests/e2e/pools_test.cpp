// Two pools of workers: a job runs where it may, also after a crash, and what cannot run says where
// it could.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

class TwoPools : public testing::Test {
protected:
    TwoPools() {
        thread_.start();
        gold_ = std::make_unique<ComfyDouble>(
            thread_.context(), DoubleOptions{.delay = Millis(300), .models = {"large.safetensors"}}
        );
        other_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
        gold_->start();
        other_->start();
        const std::string file = folder_ / "comfyd.yaml";
        std::ofstream(file) << "workers:\n"
                            << "  - {id: large, url: \"" << gold_->url() << "\", pool: gold}\n"
                            << "  - {id: small, url: \"" << other_->url() << "\"}\n"
                            << "fleet:\n  poll_ms: 100\n";
        comfyd_ =
            std::make_unique<Comfyd>(ComfydOptions{.arguments = {"--no-engine", "--config", file}});
    }
    ~TwoPools() override {
        comfyd_.reset();
        gold_.reset();
        other_.reset();
        thread_.stop();
    }
    void SetUp() override {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 2;
        })) << comfyd_->log();
    }
    static json::object with_model(const std::string& text, const char* model) {
        json::object graph = text_to_image(text);
        graph.at("4").as_object().at("inputs").as_object()["ckpt_name"] = model;
        return graph;
    }

    TempDir folder_;
    net::IoThread thread_{"doubles"};
    std::unique_ptr<ComfyDouble> gold_;
    std::unique_ptr<ComfyDouble> other_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(TwoPools, JobsStayInTheirPoolThoughAnotherWorkerIsFree) {
    std::vector<std::string> ids;
    for (int i = 0; i < 3; ++i) {
        ids.push_back(comfyd_->submit(text_to_image(std::to_string(i)), {{"pool", "gold"}}));
    }
    ASSERT_TRUE(wait_until([this] { return gold_->executions().total >= 1; }));
    comfyd_->restart();  // those that wait still know their pool
    for (const std::string& id : ids) {
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    }
    EXPECT_EQ(gold_->executions().total, 3U);
    EXPECT_EQ(other_->executions().total, 0U);
    const std::string id = comfyd_->submit(text_to_image("d"), {{"pool", "default"}});
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded");
    EXPECT_EQ(other_->executions().total, 1U);
    EXPECT_THAT(comfyd_->http().get("/api/v1/workers/large").body, HasSubstr(R"("pool":"gold")"));
    EXPECT_THAT(comfyd_->http().get("/metrics").body, HasSubstr(R"(pool="gold")"));
}

TEST_F(TwoPools, WhatAPoolCannotRunNamesThoseThatCould) {
    const json::object graph = with_model("x", "large.safetensors");
    const Reply refused =
        comfyd_->http().post_json("/api/v2/jobs", {{"workflow", graph}, {"pool", "default"}});
    EXPECT_EQ(refused.status, 422) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr(R"("other_pools":["gold"])"));
    EXPECT_THAT(refused.body, HasSubstr("it would start with the pool 'gold'"));
    const Reply unknown =
        comfyd_->http().post_json("/api/v2/jobs", {{"workflow", graph}, {"pool", "silver"}});
    EXPECT_THAT(unknown.body, HasSubstr("the pools are default, gold"));
    const Reply native = comfyd_->http().post_json(
        "/prompt", {{"prompt", graph}, {"extra_data", {{"comfyd", {{"pool", "default"}}}}}}
    );
    EXPECT_EQ(native.status, 400);
    EXPECT_THAT(native.body, HasSubstr("no_capable_worker"));
    const std::string id = comfyd_->submit(graph);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded");
    EXPECT_EQ(other_->executions().total, 0U);
}

}  // namespace
}  // namespace comfyd::support
