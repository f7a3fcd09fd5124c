// Jobs that fail, in each way, on workers that are processes of their own; and what every API says
// of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "native_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;

// A ComfyUI stand-in as a process, so that it can be started anew on its port.
class Worker {
public:
    explicit Worker(std::vector<std::string> more = {}) : more_(std::move(more)) { start(); }

    void start() {
        std::vector<std::string> arguments{COMFY_DOUBLE, "--listen", listen_};
        arguments.insert(arguments.end(), more_.begin(), more_.end());
        std::optional<std::string> url;
        wait_until([&] {
            process_ = std::make_unique<Process>(arguments);
            url = process_->wait_for_line("listening on ");
            return url.has_value();  // the port may be another's for a moment
        });
        url_ = url.value_or("");
        listen_ = url_.substr(std::string("http://").size());
        http_ = std::make_unique<Http>(url_);
    }
    void restart() {
        process_->kill(SIGKILL);
        process_->wait();
        start();
    }
    void set_faults(const json::object& faults) { http_->post_json("/_double/faults", faults); }
    std::int64_t count(const char* what) {
        return http_->get("/_double/executions").json().at(what).as_int64();
    }
    const std::string& url() const { return url_; }

private:
    std::vector<std::string> more_;
    std::string listen_ = "127.0.0.1:0";
    std::unique_ptr<Process> process_;
    std::string url_;
    std::unique_ptr<Http> http_;
};

// Two pictures; the second saver fails as it is told.
json::object two_pictures(const std::string& fault) {
    json::object graph = text_to_image("a", fault);
    graph["10"] = graph.at("9");
    graph.at("10").at("inputs").as_object()["filename_prefix"] = "second";
    return graph;
}

class Failures : public testing::Test {
protected:
    void serve(int workers, std::vector<std::string> more = {}) {
        ComfydOptions options;
        options.arguments = {
            "--no-engine", "--set", "fleet.poll_ms=50", "--set", "fleet.lost_after_s=1"
        };
        for (int i = 0; i < workers; ++i) {
            workers_.push_back(std::make_unique<Worker>());
            options.arguments.insert(options.arguments.end(), {"--worker", workers_.back()->url()});
        }
        options.arguments.insert(options.arguments.end(), more.begin(), more.end());
        comfyd_ = std::make_unique<Comfyd>(options);
        ASSERT_TRUE(wait_until([&] { return idle() == workers; })) << comfyd_->log();
    }
    std::int64_t idle() {
        return http().get("/api/v1/workers/metrics").json().at("idle_workers").as_int64();
    }
    Http& http() { return comfyd_->http(); }
    json::value fail(const json::object& graph, json::object more = {}) {
        json::value job = comfyd_->wait_finished(comfyd_->submit(graph, std::move(more)));
        EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
        return job;
    }
    static std::vector<std::string> causes(const json::value& job) {
        std::vector<std::string> all;
        for (const json::value& attempt : job.at("attempts").as_array()) {
            const json::value& cause = attempt.at("cause");
            all.push_back(cause.is_string() ? std::string(cause.get_string()) : "");
        }
        return all;
    }
    static std::string text(const json::value& of, const char* key) {
        return std::string(of.at(key).as_string());
    }
    using Causes = std::vector<std::string>;

    std::vector<std::unique_ptr<Worker>> workers_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Failures, ANodesErrorIsTheEndAndKeepsWhatWasFinished) {
    serve(1);
    const json::value job = fail(two_pictures("node_error"));
    EXPECT_EQ(causes(job), (Causes{"node_error"}));
    EXPECT_EQ(text(job.at("error"), "cause"), "node_error");
    EXPECT_EQ(text(job.at("error"), "category"), "execution_error");
    EXPECT_FALSE(job.at("error").at("node_id").is_null());
    EXPECT_FALSE(job.at("error").at("traceback").is_null());
    ASSERT_EQ(job.at("outputs").as_array().size(), 1U);
    const std::string link = text(job.at("outputs").at(0), "url").substr(comfyd_->url().size());
    EXPECT_EQ(http().get(link).status, 200);
    EXPECT_EQ(workers_[0]->count("total"), 1);

    comfyd_->restart();  // by SIGKILL: what was kept is stored
    EXPECT_EQ(http().get(link).status, 200);
}

TEST_F(Failures, EveryApiShowsTheCauseAndWhatWasFinished) {
    serve(1);
    const std::string id = text(fail(two_pictures("node_error")), "id");
    for (const char* path : {"/v1/workflows/execution/", "/v2/workflows/execution/"}) {
        const json::value shown = http().get(path + id).json();
        EXPECT_EQ(text(shown, "status"), "failed") << path;
        EXPECT_EQ(text(shown.at("error"), "cause"), "node_error");
        EXPECT_EQ(text(shown.at("error"), "category"), "execution_error");
        EXPECT_EQ(shown.at("result").at("outputs").as_array().size(), 1U);
        EXPECT_EQ(shown.at("attempts").as_array().size(), 1U);
    }
    const json::value execute = http().get("/comfyui/execution/" + id).json();
    EXPECT_EQ(execute.at("result").at("outputs").as_array().size(), 1U);
    const json::value task = http().get("/api/v1/tasks/" + id).json();
    EXPECT_EQ(text(task, "status"), "failed");
    EXPECT_EQ(task.at("result").at("outputs").as_array().size(), 1U);
    const json::value runpod = http().get("/runpod/v2/any/status/" + id).json();
    EXPECT_EQ(text(runpod, "status"), "FAILED");
    EXPECT_EQ(text(runpod.at("errorDetails"), "cause"), "node_error");
    EXPECT_EQ(runpod.at("output").at("images").as_array().size(), 1U);
    const json::value history = http().get("/history/" + id).json();
    EXPECT_EQ(history.at(id).at("outputs").as_object().size(), 1U);
    const Reply sync =
        http().post_json("/prompt_sync", json::object{{"prompt", two_pictures("node_error")}});
    EXPECT_EQ(sync.status, 400);
    EXPECT_EQ(sync.json().at("outputs").as_object().size(), 1U);
}

TEST_F(Failures, OutOfMemoryIsTriedOnceMoreAfterTheMemoryWasFreed) {
    serve(2);
    const json::value job = fail(text_to_image("a", "oom"));
    EXPECT_EQ(causes(job), (Causes{"out_of_memory", "out_of_memory"}));
    EXPECT_NE(job.at("attempts").at(0).at("worker"), job.at("attempts").at(1).at("worker"));
    EXPECT_EQ(text(job.at("error"), "suggested_action"), "reduce_batch_size_or_model_size");
    EXPECT_EQ(job.at("error").at("retry_after"), 60);
    EXPECT_THAT(text(job.at("error"), "advice"), HasSubstr("smaller"));
    EXPECT_TRUE(wait_until([&] {
        return workers_[0]->count("frees") == 1 && workers_[1]->count("frees") == 1;
    }));
}

TEST_F(Failures, AWorkerWithoutItsGpuIsQuarantinedAndTheJobRunsElsewhere) {
    serve(2);
    workers_[0]->set_faults({{"cuda_fault", true}});
    std::vector<std::string> ids;
    for (int i = 0; i < 4; ++i) {  // at once: some of them come to either
        ids.push_back(comfyd_->submit(text_to_image(std::to_string(i), "slow=200")));
    }
    int moved = 0;
    for (const std::string& id : ids) {
        const json::value job = comfyd_->wait_finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
        moved += causes(job) == Causes{"cuda_fault", ""} ? 1 : 0;
    }
    EXPECT_EQ(moved, 1);
    const json::value listed = http().get("/admin/v1/workers").json();
    int open = 0;
    for (const json::value& worker : listed.at("workers").as_array()) {
        open += worker.at("breaker") == json::value("closed") ? 0 : 1;
    }
    EXPECT_EQ(open, 1);
    EXPECT_THAT(http().get("/metrics").body, HasSubstr("comfyd_worker_breaker_state"));
    workers_[0]->restart();
    EXPECT_TRUE(wait_until([&] { return idle() == 2; })) << "started anew, it is trusted";
}

TEST_F(Failures, AJobThatTakesDownTwoWorkersGetsNoThird) {
    serve(3);
    const json::value job = fail(text_to_image("a", "cuda_fault"), {{"max_attempts", 10}});
    EXPECT_EQ(causes(job), (Causes{"cuda_fault", "cuda_fault"}));
    EXPECT_EQ(text(job.at("error"), "cause"), "poison");
    EXPECT_EQ(job.at("error").at("retryable"), false);
    std::int64_t runs = 0;
    for (const auto& worker : workers_) {
        runs += worker->count("total");
    }
    EXPECT_EQ(runs, 2);
    const json::value good = comfyd_->wait_finished(comfyd_->submit(text_to_image("b")));
    EXPECT_EQ(Comfyd::status_of(good), "succeeded") << "the third one is there for others";
}

TEST_F(Failures, AWorkersDeathIsRememberedOverOneOfComfyd) {
    serve(3);
    const std::string id =
        comfyd_->submit(text_to_image("a", "crash_mid_job"), {{"max_attempts", 10}});
    ASSERT_TRUE(wait_until([&] { return idle() <= 2; }));
    comfyd_->restart();  // by SIGKILL
    const json::value job = comfyd_->wait_finished(id);
    EXPECT_EQ(Comfyd::status_of(job), "failed");
    EXPECT_EQ(text(job.at("error"), "cause"), "poison") << json::serialize(job);
    EXPECT_EQ(idle(), 1) << "the third worker was left alone";
}

TEST_F(Failures, OneThatIsTooSlowGetsMoreTimeOnce) {
    serve(1);
    const json::value job = fail(text_to_image("a", "hang_interruptible"), {{"timeout", 1}});
    EXPECT_EQ(causes(job), (Causes{"timeout", "timeout"}));
    EXPECT_EQ(text(job.at("error"), "category"), "timeout_error");
    EXPECT_EQ(job.at("error").at("retry_after"), 120);
    EXPECT_THAT(text(job.at("attempts").at(0), "message"), HasSubstr("within 1 s"));
    EXPECT_THAT(text(job.at("attempts").at(1), "message"), HasSubstr("within 2 s"));
}

TEST_F(Failures, ARunThatFallsSilentIsEnded) {
    serve(1, {"--set", "fleet.silent_after_s=1", "--set", "retries.hung=0"});
    const json::value job = fail(text_to_image("a", "hang_interruptible"));
    EXPECT_EQ(causes(job), (Causes{"hung"}));
}

TEST_F(Failures, TheOperatorSaysHowOftenACauseIsTriedAgain) {
    serve(1, {"--set", "retries.node_error=2", "--set", "retries.out_of_memory=0"});
    EXPECT_EQ(
        causes(fail(text_to_image("a", "node_error"))),
        (Causes{"node_error", "node_error", "node_error"})
    );
    EXPECT_EQ(causes(fail(text_to_image("b", "oom"))), (Causes{"out_of_memory"}));
    EXPECT_THAT(
        http().get("/metrics").body,
        HasSubstr(R"(comfyd_attempts_failed_total{cause="node_error",then="retry"} 2)")
    );
}

TEST_F(Failures, DeadLettersAreListedRunAgainWithChangesAndPurgedByCommand) {
    serve(1);
    const std::string id = text(fail(text_to_image("a", "node_error")), "id");
    const auto command = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {COMFYD_BINARY, "jobs"});
        words.insert(words.end(), {"--url", comfyd_->url()});
        Process process(words);
        EXPECT_EQ(process.wait(), 0) << process.errors();
        return process.output();
    };
    EXPECT_THAT(command({"failed"}), HasSubstr(id));
    EXPECT_THAT(command({"failed", "--cause", "node_error"}), HasSubstr("node_error"));
    EXPECT_EQ(command({"failed", "--cause", "hung"}), "");
    EXPECT_THAT(command({"show", id}), HasSubstr("attempts:"));
    std::string again = command({"retry", id, "--param", "3._fault=slow=1"});
    again.pop_back();
    const json::value job = comfyd_->wait_finished(again);
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    EXPECT_EQ(text(job, "retried_from"), id);
    EXPECT_THAT(command({"purge", id}), HasSubstr("1 thrown away"));
    EXPECT_EQ(http().get("/api/v2/jobs/" + id).status, 404);
    EXPECT_EQ(command({"failed"}), "");
}

}  // namespace
}  // namespace comfyd::support
