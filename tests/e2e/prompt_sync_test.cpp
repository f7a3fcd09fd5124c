// POST /prompt_sync of the real binary: on the embedded engine, and with ComfyUI workers that hang
// and fail.
#include <gtest/gtest.h>

#include <future>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

TEST(PromptSync, AResultInOneRequest) {
    Comfyd comfyd;
    const Reply reply = comfyd.http().post_json(
        "/prompt_sync", {{"prompt", small_picture()}, {"return_image_base64", true}}
    );
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json_at("/status"), "success");
    EXPECT_TRUE(reply.json_at("/execution_time").is_number());
    EXPECT_EQ(reply.json_at("/node_errors"), json::value(json::object()));
    const std::string id(reply.json_at("/prompt_id").as_string());
    EXPECT_EQ(reply.json_at("/outputs/3/images/0/type"), "output");
    const std::string url(reply.json_at("/outputs/3/images/0/url").as_string());
    const std::string picture = comfyd.http().get(url.substr(comfyd.url().size())).body;
    EXPECT_EQ(picture.substr(1, 3), "PNG");
    EXPECT_EQ(from_base64(std::string(reply.json_at("/images/3/0/data").as_string())), picture);
    EXPECT_EQ(Comfyd::status_of(comfyd.job(id)), "succeeded") << "a job like any other";
    EXPECT_TRUE(comfyd.http().get("/history/" + id).json().as_object().contains(id));

    const Reply plain = comfyd.http().post_json("/prompt_sync", {{"prompt", small_picture(1)}});
    ASSERT_EQ(plain.status, 200) << plain.body;
    EXPECT_FALSE(plain.json().as_object().contains("images"));
    const Reply health = comfyd.http().get("/health");
    EXPECT_EQ(health.json_at("/comfyui_server"), "connected");
    EXPECT_TRUE(health.json_at("/timestamp").is_double()) << health.body;
    EXPECT_EQ(health.json_at("/queue_running"), 0);
    EXPECT_EQ(health.json_at("/queue_pending"), 0);
}

TEST(PromptSync, WhatIsNotValidIsRefusedWithItsNode) {
    Comfyd comfyd;
    json::object wrong = small_picture();
    wrong["1"].as_object()["inputs"].as_object()["width"] = -5;
    const Reply reply = comfyd.http().post_json("/prompt_sync", {{"prompt", std::move(wrong)}});
    EXPECT_EQ(reply.status, 422) << reply.body;
    EXPECT_EQ(reply.json_at("/status"), "error");
    EXPECT_TRUE(reply.json_at("/node_errors/1/0").is_string()) << reply.body;
    EXPECT_EQ(reply.json_at("/prompt_id"), json::value(nullptr));
    for (const char* body :
         {"", "{", "[]", "{}", R"({"prompt": 5})", R"({"prompt": {}, "timeout": -1})"}) {
        const Reply bad = comfyd.http().post("/prompt_sync", body);
        EXPECT_EQ(bad.status, 422) << body << " -> " << bad.body;
        EXPECT_TRUE(bad.json_at("/detail").is_string()) << body;
    }
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs").json_at("/jobs").as_array().size(), 0U);
}

TEST(PromptSync, WithoutAWorkerNothingIsQueued) {
    ComfydOptions options;
    options.arguments = {"--no-engine"};
    Comfyd comfyd(options);
    const Reply reply = comfyd.http().post_json("/prompt_sync", {{"prompt", small_picture()}});
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.json_at("/error"), "No worker available");
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs").json_at("/jobs").as_array().size(), 0U);
    const Reply health = comfyd.http().get("/health");
    EXPECT_EQ(health.status, 503);
    EXPECT_EQ(health.json_at("/status"), "unhealthy");
    EXPECT_EQ(health.json_at("/comfyui_server"), "disconnected");
    EXPECT_EQ(comfyd.http().get("/ready").status, 503);
    EXPECT_EQ(comfyd.http().get("/readyz").status, 200) << "the queue takes jobs";
}

class PromptSyncWorkers : public testing::Test {
protected:
    explicit PromptSyncWorkers(DoubleOptions of_worker = {}) {
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(of_worker));
        worker_->start();
        ComfydOptions options;
        options.arguments = {
            "--no-engine", "--worker", worker_->url(), "--set", "fleet.poll_ms=100"
        };
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    ~PromptSyncWorkers() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }
    void SetUp() override {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(1);
        })) << comfyd_->log();
    }
    Reply post(json::object prompt, json::object more = {}) {
        more["prompt"] = std::move(prompt);
        return comfyd_->http().post_json("/prompt_sync", more);
    }
    static std::string request_of(json::object prompt, json::object more) {
        more["prompt"] = std::move(prompt);
        const std::string body = json::serialize(more);
        return "POST /prompt_sync HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body;
    }
    void leave_while_it_runs(json::object prompt, json::object more) {
        RawSocket client(comfyd_->url());
        client.send(request_of(std::move(prompt), std::move(more)));
        ASSERT_TRUE(wait_until([this] { return worker_->executions().total == 1; }));
    }
    std::string only_job() {
        return std::string(comfyd_->http().get("/api/v2/jobs").json_at("/jobs/0/id").as_string());
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(PromptSyncWorkers, AFailedNodeIsATaskError) {
    const Reply reply = post(text_to_image("x", "node_error"));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json_at("/error"), "Task execution failed");
    EXPECT_TRUE(reply.json_at("/node_errors/9/0").is_string()) << reply.body;
    EXPECT_TRUE(reply.json_at("/prompt_id").is_string());
}

class PromptSyncLargePictures : public PromptSyncWorkers {
protected:
    PromptSyncLargePictures() : PromptSyncWorkers(large()) {}
    static DoubleOptions large() {
        DoubleOptions options;
        options.output_bytes = 33 * 1024 * 1024;
        return options;
    }
};

TEST_F(PromptSyncLargePictures, ComeAsLinksOnly) {
    const Reply reply = post(text_to_image("x"), {{"return_image_base64", true}});
    EXPECT_EQ(reply.status, 413) << reply.body.substr(0, 500);
    EXPECT_TRUE(reply.json_at("/prompt_id").is_string());
    ASSERT_TRUE(reply.json_at("/outputs/9/images/0/url").is_string());
    EXPECT_EQ(post(text_to_image("y")).status, 200);
}

TEST_F(PromptSyncWorkers, ATimeoutCancels) {
    const Reply reply = post(text_to_image("x", "hang_interruptible"), {{"timeout", 0.5}});
    EXPECT_EQ(reply.status, 408) << reply.body;
    EXPECT_EQ(reply.json_at("/status"), "timeout");
    const std::string id(reply.json_at("/prompt_id").as_string());
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "canceled");
    EXPECT_TRUE(wait_until([this] { return worker_->queue_remaining() == 0; }));
}

TEST_F(PromptSyncWorkers, OrLetsThePromptGoOn) {
    const Reply reply =
        post(text_to_image("x", "slow=1500"), {{"timeout", 0.3}, {"on_timeout", "continue"}});
    EXPECT_EQ(reply.status, 408) << reply.body;
    const std::string id(reply.json_at("/prompt_id").as_string());
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "succeeded");
}

TEST_F(PromptSyncWorkers, OneWhoseClientWentAwayIsCancelled) {
    leave_while_it_runs(text_to_image("x", "hang_interruptible"), {});
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(only_job())), "canceled");
    EXPECT_TRUE(wait_until([this] { return worker_->queue_remaining() == 0; }));
}

TEST_F(PromptSyncWorkers, OrGoesOnWithoutItsClient) {
    leave_while_it_runs(text_to_image("x", "slow=500"), {{"on_timeout", "continue"}});
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(only_job())), "succeeded");
}

TEST_F(PromptSyncWorkers, AServerThatStopsIsNoClientThatWentAway) {
    RawSocket client(comfyd_->url());
    client.send(request_of(text_to_image("x", "slow=500"), {}));
    ASSERT_TRUE(wait_until([this] { return worker_->executions().total == 1; }));
    EXPECT_EQ(comfyd_->stop(), 0);
    comfyd_->start();
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(only_job())), "succeeded");
    EXPECT_EQ(worker_->executions().total, 1U);
}

TEST_F(PromptSyncWorkers, OneThatIsCancelledElsewhereSaysSo) {
    auto reply = std::async(std::launch::async, [this] {
        return post(text_to_image("x", "hang_interruptible"));
    });
    ASSERT_TRUE(wait_until([this] { return worker_->executions().total == 1; }));
    EXPECT_EQ(comfyd_->http().post("/interrupt", "").status, 200);
    const Reply answer = reply.get();
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json_at("/code"), "cancelled");
}

}  // namespace
}  // namespace comfyd::support
