#include "api/dialects/comfyui_execute/comfyui_execute.hpp"

#include <gtest/gtest.h>

#include "api/dialects/literal.hpp"
#include "api/dialects/shapes_fixture.hpp"

namespace comfyd::api::comfyui_execute {
namespace {

using fixture::text;
using jobs::State;

TEST(ComfyuiExecuteRequest, DecodesEveryField) {
    auto decoded = decode_request(literal(R"({
        "workflow": {
            "nodes": {"1": {"class_type": "A"}, "2": {"class_type": "B"}},
            "links": [["1", 0, "2", "images"]]
        },
        "inputs": {"1.width": 64, "prompt": "a cat"},
        "output_config": {"format": "png", "quality": 95,
                          "storage": {"provider": "s3", "bucket": "results", "path": "out/"}},
        "execution_config": {"timeout": 300, "gpu_memory_fraction": 0.8, "batch_size": 1, "priority": 9}
    })"));
    ASSERT_TRUE(decoded.has_value());
    const Submission& submission = decoded->submission;
    EXPECT_EQ(submission.spec.dialect, "comfyui-execute");
    EXPECT_EQ(
        text(submission.workflow),
        R"({"1":{"class_type":"A"},"2":{"class_type":"B","inputs":{"images":["1",0]}}})"
    );
    EXPECT_EQ(text(submission.parameters), R"({"1.width":64,"prompt":"a cat"})");
    EXPECT_EQ(decoded->common.size(), 4U);
    EXPECT_EQ(decoded->common.at("gpu_memory_fraction"), 0.8);
    EXPECT_EQ(decoded->common.at("priority"), 9);
    EXPECT_EQ(decoded->common.at("timeout"), 300);
    EXPECT_EQ(decoded->common.at("output_config").at("storage").at("bucket"), "results");
    EXPECT_EQ(submission.spec.dialect_data.at("output_config").at("quality"), 95);
    EXPECT_EQ(submission.spec.dialect_data.at("execution_config").at("batch_size"), 1);
}

TEST(ComfyuiExecuteRequest, TakesAPlainWorkflow) {
    auto decoded = decode_request(literal(R"({"workflow": {"1": {"class_type": "A"}}})"));
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(text(decoded->submission.workflow), R"({"1":{"class_type":"A"}})");
}

TEST(ComfyuiExecuteRequest, RefusesWhatIsMissingOrOfAnotherType) {
    for (const char* body : {
             R"({})",
             R"({"workflow": "x"})",
             R"({"workflow": {}, "inputs": 3})",
             R"({"workflow": {}, "output_config": []})",
             R"({"workflow": {}, "output_config": {"format": 1}})",
             R"({"workflow": {}, "output_config": {"quality": 0}})",
             R"({"workflow": {}, "output_config": {"quality": 95.5}})",
             R"({"workflow": {}, "output_config": {"quality": 1e300}})",
             R"({"workflow": {}, "output_config": {"quality": "high"}})",
             R"({"workflow": {}, "output_config": {"storage": "s3"}})",
             R"({"workflow": {}, "output_config": {"storage": {"bucket": 1}}})",
             R"({"workflow": {}, "execution_config": []})",
             R"({"workflow": {}, "execution_config": {"batch_size": 0}})",
             R"({"workflow": {}, "execution_config": {"max_retries": -1}})",
         }) {
        const auto decoded = decode_request(literal(body));
        ASSERT_FALSE(decoded.has_value()) << body;
        EXPECT_EQ(decoded.error().code, Code::invalid_argument) << body;
    }
}

TEST(ComfyuiExecuteAnswer, Accepted) {
    auto view = fixture::shown(State::queued).view;
    EXPECT_EQ(
        text(encode_accepted(view, "")),
        R"({"estimated_duration":null,"execution_id":"01890000-0000-7000-8000-000000000001",)"
        R"("queue_position":null,"status":"accepted","webhook_url":null})"
    );
    view.queue_position = 3;
    view.estimated_wait_s = 30;
    EXPECT_EQ(encode_accepted(view, "").at("estimated_duration"), 30);
    view.estimated_remaining_s = 45;
    const auto body = encode_accepted(view, "https://there/hook");
    EXPECT_EQ(body.at("estimated_duration"), 45);
    EXPECT_EQ(body.at("queue_position"), 3);
    EXPECT_EQ(body.at("webhook_url"), "https://there/hook");
    EXPECT_EQ(encode_accepted(fixture::shown(State::running).view, "").at("queue_position"), 0);
}

TEST(ComfyuiExecuteAnswer, EveryStateHasAStatus) {
    for (int index = 0; index <= static_cast<int>(State::expired); ++index) {
        const auto state = static_cast<State>(index);
        const auto body = encode_status(fixture::shown(state), fixture::links());
        EXPECT_EQ(body.at("status").as_string(), execution::status_of(state));
        EXPECT_TRUE(body.contains("estimated_duration"));
        EXPECT_EQ(body.at("error").is_object(), state == State::failed || state == State::expired);
    }
    const auto failed = encode_status(fixture::shown(State::failed), fixture::links());
    EXPECT_EQ(failed.at("error").at("error_code"), "OUT_OF_MEMORY");
}

TEST(ComfyuiExecuteAnswer, MessagesSpellErrorsTheSameWay) {
    const auto message =
        encode_message({{"type", "error"}, {"error", json::object{{"code", "worker_lost"}}}});
    EXPECT_EQ(message.at("error").at("error_code"), "WORKER_LOST");
    EXPECT_EQ(text(encode_message({{"type", "progress"}})), R"({"type":"progress"})");
}

TEST(ComfyuiExecuteError, WorkflowErrorsListNodesAndConnections) {
    EXPECT_EQ(
        text(encode_error(
            Error(Code::invalid_workflow, "bad", {{"missing_nodes", json::array{"LoadImage"}}})
        )),
        R"({"details":{"invalid_connections":[],"missing_nodes":["LoadImage"],)"
        R"("suggested_action":"validate_workflow_structure"},"error_code":"INVALID_WORKFLOW",)"
        R"("message":"bad","status":"error"})"
    );
    EXPECT_EQ(
        text(encode_error(Error(Code::not_found, "no"))),
        R"({"details":{"suggested_action":"check_the_id_or_path"},"error_code":"NOT_FOUND",)"
        R"("message":"no","status":"error"})"
    );
}

TEST(ComfyuiExecuteDocument, IsThere) {
    for (const auto& operation :
         {operation_execute(),
          operation_get(),
          operation_list(),
          operation_cancel(),
          operation_events()}) {
        EXPECT_TRUE(operation.contains("operationId"));
        EXPECT_TRUE(operation.at("responses").as_object().contains("default"));
    }
    EXPECT_TRUE(schemas().contains("ComfyuiAccepted"));
}

}  // namespace
}  // namespace comfyd::api::comfyui_execute
