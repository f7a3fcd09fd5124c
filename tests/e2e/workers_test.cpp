// comfyd against ComfyUI workers that behave, misbehave and die.
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

class Workers : public testing::Test {
protected:
    ~Workers() override {
        doubles_.clear();
        thread_.stop();
    }

    ComfyDouble& add(DoubleOptions options = {}) {
        if (doubles_.empty()) {
            thread_.start();
        }
        doubles_.push_back(std::make_unique<ComfyDouble>(thread_.context(), std::move(options)));
        doubles_.back()->start();
        return *doubles_.back();
    }

    // comfyd with all doubles so far as its workers, impatient so that tests are fast.
    Comfyd& serve(std::vector<std::string> more = {}) {
        ComfydOptions options;
        options.arguments = {
            "--no-engine", "--set", "fleet.poll_ms=100", "--set", "fleet.lost_after_s=1"
        };
        for (const auto& worker : doubles_) {
            options.arguments.insert(options.arguments.end(), {"--worker", worker->url()});
        }
        options.arguments.insert(options.arguments.end(), more.begin(), more.end());
        comfyd_ = std::make_unique<Comfyd>(options);
        return *comfyd_;
    }

    bool all_idle() {
        const json::value workers = comfyd_->http().get("/api/v1/workers/metrics").json();
        return workers.at("idle_workers").as_int64() == static_cast<std::int64_t>(doubles_.size());
    }
    void wait_idle() {
        ASSERT_TRUE(wait_until([this] { return all_idle(); })) << comfyd_->log();
    }

    net::IoThread thread_{"doubles"};
    std::vector<std::unique_ptr<ComfyDouble>> doubles_;
    std::unique_ptr<Comfyd> comfyd_;
};

// The double has the classes too, but its GPU is for those who need it.
TEST_F(Workers, ModelFreeWorkflowsAreOffloadedToTheEngine) {
    ComfyDouble& gpu = add();
    ComfydOptions options;
    options.arguments = {"--worker", gpu.url(), "--set", "engine.offload=true"};
    Comfyd comfyd(options);
    ASSERT_TRUE(wait_until([&] {
        return comfyd.http().get("/api/v1/workers/metrics").json_at("/idle_workers") == 2;
    })) << comfyd.log();
    for (int color = 0; color < 5; ++color) {
        const json::value job = comfyd.wait_finished(comfyd.submit(small_picture(color)));
        EXPECT_EQ(Comfyd::status_of(job), "succeeded");
    }
    EXPECT_EQ(gpu.accepted_prompts().size(), 0U);
    const json::value job = comfyd.wait_finished(comfyd.submit(text_to_image("a cat")));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded");
    EXPECT_EQ(gpu.accepted_prompts().size(), 1U);
}

TEST_F(Workers, OldAndNewComfyUi) {
    for (const char* version : {"0.33.0", "0.3.45"}) {
        doubles_.clear();
        thread_.stop();
        DoubleOptions options;
        options.version = version;
        doubles_.push_back(std::make_unique<ComfyDouble>(thread_.context(), options));
        thread_.context().restart();
        thread_.start();
        doubles_.back()->start();
        Comfyd& comfyd = serve();
        const json::value job = comfyd.wait_finished(comfyd.submit(text_to_image("a cat")));
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << version << json::serialize(job);
        EXPECT_EQ(job.at("outputs").as_array().size(), 1U);
        comfyd_.reset();
    }
}

struct FaultCase {
    const char* fault;
    const char* status;
    const char* error;  // expected code, or empty

    friend void PrintTo(const FaultCase& shown, std::ostream* out) { *out << shown.fault; }
};

class WorkerFaults : public Workers, public testing::WithParamInterface<FaultCase> {};

TEST_P(WorkerFaults, EndAsTheyShould) {
    ComfyDouble& worker = add();
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string id =
        comfyd.submit(text_to_image("x", GetParam().fault), {{"max_attempts", 2}});
    const json::value job = comfyd.wait_finished(id, std::chrono::seconds(60));
    EXPECT_EQ(Comfyd::status_of(job), GetParam().status) << json::serialize(job) << comfyd.log();
    if (*GetParam().error != '\0') {
        EXPECT_EQ(job.at("error").at("code"), GetParam().error);
    } else {
        EXPECT_EQ(job.at("outputs").as_array().size(), 1U);
        EXPECT_EQ(worker.executions().total, 1U) << "run once";
    }
    // The worker takes the next job whatever happened.
    const json::value next = comfyd.wait_finished(comfyd.submit(text_to_image("y")));
    EXPECT_EQ(Comfyd::status_of(next), "succeeded");
}

INSTANTIATE_TEST_SUITE_P(
    All,
    WorkerFaults,
    testing::Values(
        FaultCase{"slow=300", "succeeded", ""},
        FaultCase{"ws_silence", "succeeded", ""},
        FaultCase{"ws_disconnect=3", "succeeded", ""},
        FaultCase{"bad_json", "succeeded", ""},
        FaultCase{"duplicate", "succeeded", ""},
        FaultCase{"out_of_order", "succeeded", ""},
        FaultCase{"garbage", "succeeded", ""},
        FaultCase{"oom", "failed", "out_of_memory"},
        FaultCase{"node_error", "failed", "node_execution_error"},
        FaultCase{"interrupted", "failed", "worker_lost"},
        FaultCase{"lose_prompt", "failed", "worker_lost"}
    ),
    [](const auto& info) {
        std::string name = info.param.fault;
        std::replace_if(
            name.begin(),
            name.end(),
            [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
            '_'
        );
        return name;
    }
);

TEST_F(Workers, AJobMovesToAnotherWorkerWhenItsOwnDies) {
    DoubleOptions slow;
    slow.delay = Millis(1500);
    add(slow);
    add(slow);
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string id = comfyd.submit(text_to_image("survivor"));
    ASSERT_TRUE(wait_until([&] {
        return doubles_[0]->executions().total + doubles_[1]->executions().total == 1;
    }));
    ComfyDouble& victim = doubles_[0]->executions().total == 1 ? *doubles_[0] : *doubles_[1];
    victim.crash();
    const json::value job = comfyd.wait_finished(id, std::chrono::seconds(60));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd.log();
    EXPECT_EQ(doubles_[0]->executions().total + doubles_[1]->executions().total, 2U);
    // The port may be taken for a moment by a connection of somebody else.
    ASSERT_TRUE(wait_until([&] {
        try {
            victim.start();
            return true;
        } catch (const std::runtime_error&) {
            return false;
        }
    }));
    wait_idle();
}

TEST_F(Workers, CancelReachesTheRunningPromptAndOnlyThat) {
    ComfyDouble& worker = add();
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string running = comfyd.submit(text_to_image("a", "hang_interruptible"));
    ASSERT_TRUE(comfyd.wait_status(running, "running"));
    ASSERT_TRUE(wait_until([&] { return worker.executions().total == 1; }));
    const std::string queued = comfyd.submit(text_to_image("b"));
    const std::string last = comfyd.submit(text_to_image("c"));
    const Reply cancelled = comfyd.http().post("/api/v2/jobs/" + queued + "/cancel", "");
    EXPECT_EQ(cancelled.json_at("/status"), "canceled") << cancelled.body;
    EXPECT_EQ(comfyd.http().post("/api/v2/jobs/" + running + "/cancel", "").status, 200);
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(running)), "canceled");
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(last)), "succeeded");
    EXPECT_EQ(worker.executions().total, 2U) << "the queued one never ran";
    EXPECT_EQ(
        comfyd.http().post("/api/v2/jobs/" + last + "/cancel", "").json_at("/status"), "succeeded"
    );
}

TEST_F(Workers, ATimeoutInterruptsTheGpu) {
    ComfyDouble& worker = add();
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string id =
        comfyd.submit(text_to_image("a", "hang_interruptible"), {{"timeout", 1}});
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
    EXPECT_EQ(job.at("error").at("code"), "execution_timeout");
    EXPECT_TRUE(wait_until([&] { return worker.queue_remaining() == 0; }));
    EXPECT_EQ(
        Comfyd::status_of(comfyd.wait_finished(comfyd.submit(text_to_image("b")))), "succeeded"
    );
}

TEST_F(Workers, ADeadlineExpiresAWaitingJob) {
    Comfyd& comfyd = serve();
    const Time soon = SystemClock().now() + Millis(700);
    const std::string id = comfyd.submit(text_to_image("a"), {{"deadline", to_rfc3339(soon)}});
    EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "expired");
}

TEST_F(Workers, WithNoWorkerKnownAJobIsAcceptedAndWaits) {
    Comfyd& comfyd = serve();
    const std::string id = comfyd.submit(text_to_image("patient"));
    EXPECT_EQ(comfyd.job(id).at("status"), "queued");
    EXPECT_EQ(comfyd.job(id).at("queue_position"), 1);
    // The same data with a worker: the job is still there and runs.
    ComfydOptions options;
    options.data = comfyd.data();
    comfyd.stop();
    ComfyDouble& worker = add();
    options.arguments = {"--no-engine", "--worker", worker.url()};
    Comfyd second(options);
    EXPECT_EQ(Comfyd::status_of(second.wait_finished(id)), "succeeded");
}

TEST_F(Workers, PriorityThenOrder) {
    DoubleOptions options;
    options.delay = Millis(50);
    ComfyDouble& worker = add(options);
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string first = comfyd.submit(text_to_image("first", "slow=500"));
    ASSERT_TRUE(wait_until([&] { return worker.executions().total == 1; }));
    const std::string low = comfyd.submit(text_to_image("low"), {{"priority", 2}});
    const std::string a = comfyd.submit(text_to_image("a"));
    const std::string b = comfyd.submit(text_to_image("b"));
    const std::string high = comfyd.submit(text_to_image("high"), {{"priority", 9}});
    EXPECT_EQ(comfyd.job(low).at("queue_position"), 4);
    EXPECT_EQ(comfyd.job(high).at("queue_position"), 1);
    for (const std::string& id : {first, low, a, b, high}) {
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded");
    }
    std::vector<std::string> texts;
    for (const json::object& prompt : worker.accepted_prompts()) {
        texts.emplace_back(prompt.at("prompt").at("6").at("inputs").at("text").as_string());
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"first", "high", "a", "b", "low"}));
}

// Its loader runs for every job, and takes long only when the checkpoint is another one.
TEST_F(Workers, AWorkerStaysWithItsCheckpointWhileJobsForItWait) {
    const std::vector<std::string> models = {"a.safetensors", "b.safetensors", "c.safetensors"};
    ComfyDouble& worker = add({.delay = Millis(14), .load = Millis(400), .models = models});
    Comfyd& comfyd = serve();
    wait_idle();
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < 30; ++i) {
        json::object graph = text_to_image(std::to_string(i));
        graph.at("4").as_object().at("inputs").as_object()["ckpt_name"] = models[i % 3];
        ids.push_back(comfyd.submit(graph));
    }
    for (const std::string& id : ids) {
        EXPECT_EQ(Comfyd::status_of(comfyd.wait_finished(id)), "succeeded");
    }
    EXPECT_LE(worker.executions().loads, 6U);
}

TEST_F(Workers, OutputsOfEveryKindAreKept) {
    add();
    Comfyd& comfyd = serve();
    wait_idle();
    const json::object workflow = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 8, "height": 8, "batch_size": 1, "color": 1}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "x"}},
        "3": {"class_type": "PreviewImage", "inputs": {"images": ["1", 0]}},
        "4": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}}})");
    const json::value job = comfyd.wait_finished(comfyd.submit(workflow));
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    std::multiset<std::string> types;
    for (const json::value& output : job.at("outputs").as_array()) {
        types.emplace(output.at("type").as_string());
    }
    EXPECT_EQ(types, (std::multiset<std::string>{"image", "image", "text"}));
}

TEST_F(Workers, ARestartReattachesToWhatRuns) {
    DoubleOptions options;
    options.delay = Millis(1500);
    ComfyDouble& worker = add(options);
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string id = comfyd.submit(text_to_image("long"));
    ASSERT_TRUE(wait_until([&] { return worker.executions().total == 1; }));
    comfyd.restart();
    const json::value job = comfyd.wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd.log();
    EXPECT_EQ(worker.executions().total, 1U) << "not run twice";
}

TEST_F(Workers, ADrainingWorkerGetsNothingMore) {
    add();
    add();
    Comfyd& comfyd = serve();
    wait_idle();
    const std::string drained = doubles_[0]->url().substr(std::string("http://").size());
    EXPECT_EQ(
        comfyd.http().post("/admin/v1/workers/" + drained + "/drain", "").json_at("/status"),
        "draining"
    );
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(
            Comfyd::status_of(comfyd.wait_finished(comfyd.submit(text_to_image(std::to_string(i))))
            ),
            "succeeded"
        );
    }
    comfyd.restart();
    for (int i = 5; i < 10; ++i) {
        EXPECT_EQ(
            Comfyd::status_of(comfyd.wait_finished(comfyd.submit(text_to_image(std::to_string(i))))
            ),
            "succeeded"
        );
    }
    EXPECT_EQ(doubles_[0]->executions().total, 0U) << "a restart does not bring it back";
    EXPECT_EQ(comfyd.http().post("/admin/v1/workers/" + drained + "/resume", "").status, 200);
    wait_idle();
    EXPECT_EQ(comfyd.http().post("/admin/v1/workers/nobody/drain", "").status, 404);
}

TEST_F(Workers, AWorkflowThatNoWorkerCanRunIsRefused) {
    add();
    Comfyd& comfyd = serve();
    wait_idle();
    json::object workflow = text_to_image("x");
    workflow["3"].as_object()["class_type"] = "ExoticSampler";
    const Reply reply = comfyd.http().post_json("/api/v2/jobs", {{"workflow", workflow}});
    EXPECT_EQ(reply.status, 422);
    EXPECT_NE(reply.body.find("ExoticSampler"), std::string::npos);
}

}  // namespace
}  // namespace comfyd::support
