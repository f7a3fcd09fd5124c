// The RunPod-compatible API of the real binary: on the embedded engine, and with ComfyUI workers
// that hang and fail.
#include <gtest/gtest.h>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

std::string path(const std::string& rest, const std::string& endpoint = "sdxl") {
    return "/runpod/v2/" + endpoint + "/" + rest;
}

std::string run(Comfyd& comfyd, json::object workflow, json::object more = {}) {
    more["input"] = json::object{{"workflow", std::move(workflow)}};
    const Reply reply = comfyd.http().post_json(path("run"), more);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.status == 200 ? std::string(reply.json_at("/id").as_string()) : std::string();
}

std::string status_of(Comfyd& comfyd, const std::string& id) {
    const json::value status = comfyd.http().get(path("status/" + id)).json_at("/status");
    return status.is_string() ? std::string(status.as_string()) : std::string();
}

bool wait_status(Comfyd& comfyd, const std::string& id, const std::string& wanted) {
    return wait_until([&] { return status_of(comfyd, id) == wanted; });
}

TEST(RunPod, APictureInAndAPictureOut) {
    Comfyd comfyd;
    const Reply made =
        comfyd.http().post_json(path("runsync"), {{"input", {{"workflow", small_picture(255)}}}});
    ASSERT_EQ(made.status, 200) << made.body;
    ASSERT_EQ(made.json_at("/status"), "COMPLETED") << made.body;
    EXPECT_TRUE(made.json_at("/delayTime").is_number());
    EXPECT_TRUE(made.json_at("/executionTime").is_number());
    EXPECT_EQ(made.json_at("/output/images/0/type"), "base64");
    const json::value picture = made.json_at("/output/images/0/data");
    ASSERT_TRUE(picture.is_string());
    const auto bytes = from_base64(std::string(picture.as_string()));
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->substr(1, 3), "PNG");

    // Two clients that use one name for their pictures do not disturb each other.
    const json::object copy = *json::parse_object(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "in.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "copy"}}})"
    );
    const Reply other =
        comfyd.http().post_json(path("runsync"), {{"input", {{"workflow", small_picture(7)}}}});
    const json::value second = other.json_at("/output/images/0/data");
    ASSERT_NE(picture, second);
    std::vector<std::string> copies;
    for (const json::value& image : {picture, second}) {
        const std::string data_url = "data:image/png;base64," + std::string(image.as_string());
        const json::object input{
            {"workflow", copy},
            {"images", json::array{json::object{{"name", "in.png"}, {"image", data_url}}}},
        };
        const Reply copied = comfyd.http().post_json(path("runsync"), {{"input", input}});
        ASSERT_EQ(copied.json_at("/status"), "COMPLETED") << copied.body;
        copies.emplace_back(copied.json_at("/output/images/0/data").as_string());
    }
    EXPECT_NE(copies[0], copies[1]);

    const Reply linked = comfyd.http().post_json(
        path("runsync"), {{"input", {{"workflow", small_picture()}, {"return", "url"}}}}
    );
    ASSERT_EQ(linked.json_at("/output/images/0/type"), "s3_url") << linked.body;
    const std::string url(linked.json_at("/output/images/0/data").as_string());
    EXPECT_EQ(comfyd.http().get(url.substr(comfyd.url().size())).body.substr(1, 3), "PNG");
    EXPECT_EQ(comfyd.http().get(path("health")).json_at("/jobs/completed"), 5);
}

TEST(RunPod, TheWebhookTellsTheStatus) {
    Comfyd comfyd;
    WebhookReceiver receiver;
    const std::string id = run(comfyd, small_picture(), {{"webhook", receiver.url()}});
    ASSERT_TRUE(receiver.wait_for(1)) << comfyd.log();
    const json::value told = receiver.requests().front().json();
    ASSERT_TRUE(told.is_object());
    EXPECT_EQ(told.at("id"), json::value(id));
    EXPECT_EQ(told.at("status"), "COMPLETED");
    EXPECT_EQ(told.at("output").at("images").at(0).at("type"), "base64");
}

TEST(RunPod, BadWorkflowsAreRefused) {
    Comfyd comfyd;
    json::object unknown = small_picture();
    unknown["2"].as_object()["class_type"] = "NoSuchNode";
    const Reply reply =
        comfyd.http().post_json(path("run"), {{"input", {{"workflow", std::move(unknown)}}}});
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json_at("/code"), "invalid_workflow");
    EXPECT_NE(reply.body.find("NoSuchNode"), std::string::npos);
    EXPECT_EQ(comfyd.http().get(path("health")).json_at("/jobs/inQueue"), 0);
}

class RunPodWorkers : public testing::Test {
protected:
    RunPodWorkers() {
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
        worker_->start();
        ComfydOptions options;
        options.arguments = {
            "--no-engine",
            "--worker",
            worker_->url(),
            "--set",
            "fleet.poll_ms=100",
            "--set",
            "fleet.lost_after_s=1"
        };
        comfyd_ = std::make_unique<Comfyd>(options);
    }
    ~RunPodWorkers() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }
    void SetUp() override {
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get(path("health")).json_at("/workers/idle") == json::value(1);
        })) << comfyd_->log();
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(RunPodWorkers, AFailedJobSaysWhereAndMayBeTriedAgain) {
    const Reply failed = comfyd_->http().post_json(
        path("runsync"), {{"input", {{"workflow", text_to_image("x", "node_error")}}}}
    );
    ASSERT_EQ(failed.status, 200) << failed.body;
    EXPECT_EQ(failed.json_at("/status"), "FAILED") << failed.body;
    EXPECT_EQ(failed.json_at("/errorDetails/node_id"), "9") << failed.body;
    const std::string id(failed.json_at("/id").as_string());
    const Reply again = comfyd_->http().post(path("retry/" + id), "");
    ASSERT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(again.json_at("/id"), json::value(id));
    EXPECT_TRUE(wait_until([&] { return worker_->executions().total == 2; }));
    EXPECT_TRUE(wait_status(*comfyd_, id, "FAILED"));
}

TEST_F(RunPodWorkers, AnExecutionTimeoutInterruptsTheGpu) {
    const std::string id =
        run(*comfyd_,
            text_to_image("x", "hang_interruptible"),
            {{"policy", {{"executionTimeout", 5000}}}});
    EXPECT_TRUE(wait_status(*comfyd_, id, "TIMED_OUT")) << status_of(*comfyd_, id);
    EXPECT_TRUE(wait_until([&] { return worker_->queue_remaining() == 0; }));
    EXPECT_EQ(comfyd_->http().get(path("health")).json_at("/jobs/failed"), 1);
}

TEST_F(RunPodWorkers, WaitEndsCancelPurgeAndStream) {
    const Reply waiting = comfyd_->http().post_json(
        path("runsync?wait=1000"),
        {{"input", {{"workflow", text_to_image("x", "hang_interruptible")}}}}
    );
    ASSERT_EQ(waiting.json_at("/status"), "IN_PROGRESS") << waiting.body;
    const std::string running(waiting.json_at("/id").as_string());
    const std::string queued = run(*comfyd_, text_to_image("y"));
    const Reply stream = comfyd_->http().get(path("stream/" + running));
    EXPECT_EQ(stream.json_at("/status"), "IN_PROGRESS");
    EXPECT_TRUE(stream.json_at("/stream").is_array());
    EXPECT_EQ(comfyd_->http().post(path("retry/" + running), "").status, 409);
    EXPECT_EQ(comfyd_->http().post(path("purge-queue", "other"), "").json_at("/removed"), 0);
    EXPECT_EQ(comfyd_->http().post(path("purge-queue"), "").json_at("/removed"), 1);
    EXPECT_EQ(status_of(*comfyd_, queued), "CANCELLED");
    EXPECT_EQ(status_of(*comfyd_, running), "IN_PROGRESS");
    const Reply cancelled = comfyd_->http().post(path("cancel/" + running), "");
    EXPECT_EQ(cancelled.status, 200) << cancelled.body;
    EXPECT_TRUE(wait_status(*comfyd_, running, "CANCELLED"));
    EXPECT_EQ(worker_->executions().total, 1U) << "the purged one never ran";
}

TEST_F(RunPodWorkers, AJobOutlivesItsClient) {
    const std::string body =
        json::serialize(json::object{{"input", {{"workflow", text_to_image("x", "slow=1500")}}}});
    net::ClientRequest request;
    request.method = "POST";
    request.url = path("runsync");
    request.body = body;
    request.timeout = Millis(500);
    EXPECT_EQ(comfyd_->http().send(std::move(request)).status, 0) << "the client gave up";
    EXPECT_TRUE(wait_until([&] {
        return comfyd_->http().get(path("health")).json_at("/jobs/completed") == json::value(1);
    }));
}

}  // namespace
}  // namespace comfyd::support
