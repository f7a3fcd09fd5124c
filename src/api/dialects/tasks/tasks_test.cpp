#include "api/dialects/tasks/tasks.hpp"

#include <gtest/gtest.h>

#include "api/dialects/literal.hpp"
#include "api/dialects/shapes_fixture.hpp"

namespace comfyd::api::tasks {
namespace {

using fixture::text;
using jobs::State;

TEST(TasksRequest, DecodesEveryField) {
    auto decoded = decode_request(literal(R"({
        "workflow_id": "text_to_image_v1",
        "priority": 5,
        "payload": {"3": {"class_type": "A"}},
        "max_retries": 0,
        "timeout": 60,
        "metadata": {"a": 1},
        "webhook_url": "https://there/hook"
    })"));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->submission.spec.dialect, "tasks");
    EXPECT_EQ(decoded->submission.spec.workflow_id, "text_to_image_v1");
    EXPECT_EQ(text(decoded->submission.workflow), R"({"3":{"class_type":"A"}})");
    EXPECT_EQ(
        text(decoded->common),
        R"({"max_attempts":1,"metadata":{"a":1},"priority":5,"timeout":60,"webhook_url":"https://there/hook"})"
    );
}

TEST(TasksRequest, ThreeRetriesUnlessToldOtherwise) {
    auto decoded = decode_request(literal(R"({"payload": {"3": {"class_type": "A"}}})"));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(decoded->submission.spec.max_attempts, 4);
    EXPECT_TRUE(decoded->common.empty());
}

TEST(TasksRequest, RefusesWhatIsMissingOrOfAnotherType) {
    for (const std::string& body : {
             std::string(R"({"workflow_id": "a"})"),
             std::string(R"({"payload": []})"),
             std::string(R"({"payload": {}, "workflow_id": 3})"),
             std::string(R"({"payload": {}, "max_retries": 11})"),
             R"({"payload": {}, "workflow_id": ")" + std::string(256, 'x') + "\"}",
         }) {
        const auto decoded = decode_request(literal(body));
        ASSERT_FALSE(decoded.has_value()) << body;
        EXPECT_EQ(decoded.error().code, Code::invalid_argument) << body;
    }
}

TEST(Tasks, EveryStateHasOneOfTheFiveStatuses) {
    EXPECT_EQ(states_of("pending"), (std::vector{State::queued, State::retry_waiting}));
    EXPECT_EQ(states_of("running"), std::vector{State::running});
    EXPECT_EQ(states_of("completed"), std::vector{State::completed});
    EXPECT_EQ(states_of("failed"), (std::vector{State::failed, State::expired}));
    EXPECT_EQ(states_of("cancelled"), std::vector{State::cancelled});
    EXPECT_TRUE(states_of("queued").empty());
}

TEST(Tasks, PendingTask) {
    auto job = fixture::job(State::queued);
    job.workflow_id = "w";
    job.max_attempts = 4;
    EXPECT_EQ(
        text(encode_task(job, fixture::links())),
        R"({"completed_at":null,"created_at":"2023-11-14T22:13:20.000Z","error":"",)"
        R"("id":"01890000-0000-7000-8000-000000000001","max_retries":3,"metadata":{"order":7},"priority":5,)"
        R"("result":null,"retry_count":0,"started_at":null,"status":"pending","worker_id":"","workflow_id":"w"})"
    );
}

TEST(Tasks, CompletedTaskKeepsWhatComfyUiReported) {
    const auto body = encode_task(fixture::job(State::completed), fixture::links());
    EXPECT_EQ(body.at("status"), "completed");
    const auto& result = body.at("result").as_object();
    EXPECT_TRUE(result.at("9").as_object().contains("images"));
    EXPECT_EQ(result.at("outputs").as_array().size(), 2U);
    EXPECT_EQ(result.at("images").as_array().size(), 1U);
    EXPECT_EQ(body.at("worker_id"), "gpu-1");
    EXPECT_EQ(body.at("retry_count"), 1);
}

TEST(Tasks, ErrorsAreText) {
    EXPECT_EQ(
        encode_task(fixture::job(State::failed), fixture::links()).at("error"), "the GPU is full"
    );
    EXPECT_EQ(encode_task(fixture::job(State::expired), fixture::links()).at("error"), "too late");
    EXPECT_EQ(encode_task(fixture::job(State::retry_waiting), fixture::links()).at("error"), "");
    EXPECT_EQ(encode_task(fixture::job(State::cancelled), fixture::links()).at("error"), "");
    auto silent = fixture::job(State::failed);
    silent.failure.reset();
    EXPECT_NE(encode_task(silent, fixture::links()).at("error"), "");
    EXPECT_EQ(
        text(encode_error(Error(Code::not_found, "no such task"))),
        R"({"code":"not_found","error":"no such task"})"
    );
}

TEST(Tasks, MessagesSpeakOfTasks) {
    EXPECT_EQ(
        text(encode_message(
            {{"type", "status_change"}, {"execution_id", "x"}, {"status", "processing"}}
        )),
        R"({"status":"running","task_id":"x","type":"status_change"})"
    );
    EXPECT_EQ(encode_message({{"status", "queued"}}).at("status"), "pending");
    const auto failed = encode_message(
        {{"status", "failed"},
         {"error", json::object{{"message", "full"}, {"code", "out_of_memory"}}}}
    );
    EXPECT_EQ(
        text(failed),
        R"({"error":"full","error_details":{"code":"out_of_memory","message":"full"},"status":"failed"})"
    );
}

jobs::WorkerInfo worker(jobs::WorkerStatus status) {
    jobs::WorkerInfo info;
    info.id = "gpu-1";
    info.url = "http://10.0.0.5:8188";
    info.status = status;
    info.created_at = fixture::kCreated;
    info.last_active_at = fixture::kCreated;
    return info;
}

TEST(TasksWorkers, EveryStatusIsKnown) {
    EXPECT_EQ(worker_status(worker(jobs::WorkerStatus::starting)), "starting");
    EXPECT_EQ(worker_status(worker(jobs::WorkerStatus::idle)), "idle");
    EXPECT_EQ(worker_status(worker(jobs::WorkerStatus::running)), "running");
    EXPECT_EQ(worker_status(worker(jobs::WorkerStatus::down)), "error");
    EXPECT_EQ(worker_status(worker(jobs::WorkerStatus::draining)), "stopped");
    auto draining = worker(jobs::WorkerStatus::draining);
    draining.current_job = fixture::kJob;
    EXPECT_EQ(worker_status(draining), "running");
}

TEST(TasksWorkers, ShowsAWorker) {
    auto busy = worker(jobs::WorkerStatus::running);
    busy.current_job = fixture::kJob;
    const auto body = encode_worker(busy, true);
    EXPECT_EQ(body.at("id"), "gpu-1");
    EXPECT_EQ(body.at("port"), 8188);
    EXPECT_EQ(body.at("endpoint"), "http://10.0.0.5:8188");
    EXPECT_EQ(body.at("current_task_id").as_string(), fixture::kJob.to_string());
    EXPECT_TRUE(body.at("health_status").as_bool());
    EXPECT_EQ(encode_worker(busy, false).at("current_task_id"), "");
    EXPECT_EQ(body.at("pod_name"), "gpu-1");
    busy.machine = "comfyd-main-0123456789ab";
    EXPECT_EQ(encode_worker(busy, true).at("pod_name"), "comfyd-main-0123456789ab");
    EXPECT_EQ(encode_worker(busy, true).at("id"), "gpu-1");
    auto embedded = worker(jobs::WorkerStatus::down);
    embedded.url = "engine:";
    EXPECT_EQ(encode_worker(embedded, true).at("port"), 0);
    EXPECT_FALSE(encode_worker(embedded, true).at("health_status").as_bool());
}

TEST(TasksWorkers, Counts) {
    EXPECT_EQ(
        text(encode_worker_metrics(
            {worker(jobs::WorkerStatus::idle),
             worker(jobs::WorkerStatus::idle),
             worker(jobs::WorkerStatus::running),
             worker(jobs::WorkerStatus::starting),
             worker(jobs::WorkerStatus::down),
             worker(jobs::WorkerStatus::draining)}
        )),
        R"({"failed_workers":1,"idle_workers":2,"running_workers":1,"starting_workers":1,)"
        R"("stopped_workers":1,"total_workers":6})"
    );
    jobs::StateCounts counts;
    for (int index = 0; index <= static_cast<int>(State::expired); ++index) {
        counts.by_state[index] = static_cast<std::uint64_t>(1) << index;
    }
    EXPECT_EQ(
        text(encode_queue_metrics(counts)),
        R"({"cancelled_tasks":32,"completed_tasks":8,"failed_tasks":80,"pending_tasks":5,"running_tasks":2})"
    );
}

}  // namespace
}  // namespace comfyd::api::tasks
