#include "api/dialects/workflows/workflows.hpp"

#include <gtest/gtest.h>

#include "api/dialects/literal.hpp"
#include "api/dialects/shapes_fixture.hpp"
#include "api/dialects/workflows/workflows_socket.hpp"

namespace comfyd::api::workflows {
namespace {

using fixture::text;

TEST(WorkflowsRequest, DecodesEveryField) {
    auto decoded = decode_request(
        literal(R"({
            "workflow": {"6": {"class_type": "A", "inputs": {"text": ""}}},
            "input_params": {"6.text": "a cat", "prompt": "a dog"},
            "output_config": {"format": "png"},
            "callback_url": "https://there/hook",
            "webhook_config": {"url": "https://there/hook", "method": "post", "timeout": 30, "max_retries": 3},
            "execution_config": {"timeout": 60, "max_retries": 1},
            "priority": 8,
            "metadata": {"a": 1}
        })"),
        kV2
    );
    ASSERT_TRUE(decoded.has_value());
    const Submission& submission = decoded->submission;
    EXPECT_EQ(submission.spec.dialect, "workflows");
    EXPECT_EQ(text(submission.workflow), R"({"6":{"class_type":"A","inputs":{"text":""}}})");
    EXPECT_EQ(text(submission.parameters), R"({"6.text":"a cat","prompt":"a dog"})");
    EXPECT_EQ(
        text(submission.spec.dialect_data),
        R"({"api_version":"2.0","execution_config":{"max_retries":1,"timeout":60},)"
        R"("output_config":{"format":"png"}})"
    );
    EXPECT_EQ(decoded->common.at("timeout"), 60);
    EXPECT_EQ(decoded->common.at("max_attempts"), 2);
    EXPECT_EQ(decoded->common.at("priority"), 8);
    EXPECT_EQ(decoded->common.at("callback_url"), "https://there/hook");
    EXPECT_TRUE(decoded->common.at("webhook_config").is_object());
}

TEST(WorkflowsRequest, AWorkflowIsEnough) {
    auto decoded =
        decode_request(literal(R"({"workflow": {"nodes": {"1": {"class_type": "A"}}}})"), kV1);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(text(decoded->submission.workflow), R"({"1":{"class_type":"A"}})");
    EXPECT_EQ(decoded->submission.spec.priority, jobs::kPriorityDefault);
    EXPECT_TRUE(decoded->common.empty());
}

TEST(WorkflowsRequest, RefusesWhatIsMissingOrOfAnotherType) {
    for (const char* body : {
             R"({})",
             R"({"workflow": null})",
             R"({"workflow": []})",
             R"({"workflow": {}, "input_params": []})",
             R"({"workflow": {}, "output_config": "png"})",
             R"({"workflow": {}, "execution_config": 3})",
             R"({"workflow": {}, "webhook_config": "https://there"})",
             R"({"workflow": {}, "webhook_config": {"url": "https://there", "method": "PUT"}})",
             R"({"workflow": {}, "max_retries": 100})",
         }) {
        const auto decoded = decode_request(literal(body), kV2);
        ASSERT_FALSE(decoded.has_value()) << body;
        EXPECT_EQ(decoded.error().code, Code::invalid_argument) << body;
    }
}

TEST(WorkflowsVersion, OnlyTheFirstIsDeprecated) {
    net::Headers first;
    add_version_headers(first, kV1, "/v1/workflows/execute");
    EXPECT_EQ(first.get("X-API-Version"), "1.0");
    EXPECT_EQ(first.get("Deprecation"), "true");
    EXPECT_EQ(first.get("Link"), "</v2/workflows/execute>; rel=\"successor-version\"");
    net::Headers second;
    add_version_headers(second, kV2, "/v2/workflows/execute");
    EXPECT_EQ(second.get("X-API-Version"), "2.0");
    EXPECT_FALSE(second.contains("Deprecation"));
    EXPECT_FALSE(second.contains("Link"));
    net::Headers odd;
    add_version_headers(odd, kV1, "/v1/workflows/execution/a>b");
    EXPECT_FALSE(odd.contains("Link"));
}

TEST(WorkflowsError, HasTheSharedShapeAndTheVersion) {
    const auto response = error_response(
        Error(Code::queue_full, "full"), fixture::kCreated, kV1, "/v1/workflows/execute"
    );
    EXPECT_EQ(response.status, 429);
    EXPECT_EQ(response.headers.get("Retry-After"), "5");
    EXPECT_EQ(response.headers.get("X-API-Version"), "1.0");
    const auto body = literal(response.body);
    EXPECT_EQ(body.at("error").at("category"), "resource_error");
    EXPECT_EQ(body.at("error").at("code"), "queue_full");
    const auto missing = error_response(Error(Code::not_found, "no"), fixture::kCreated, kV2, "");
    EXPECT_EQ(missing.status, 404);
    EXPECT_FALSE(missing.headers.contains("Retry-After"));
}

TEST(WorkflowsSocket, UnderstandsCancelAndPing) {
    EXPECT_EQ(decode_client_message(R"({"type":"cancel"})", false).value(), ClientMessage::cancel);
    EXPECT_EQ(
        decode_client_message(R"({"type":"ping","n":1})", false).value(), ClientMessage::ping
    );
    EXPECT_EQ(decode_client_message("{", false).error().code, Code::malformed_json);
    for (const char* message : {R"({})", R"({"type":"stop"})", R"({"type":3})"}) {
        EXPECT_EQ(decode_client_message(message, false).error().code, Code::invalid_argument)
            << message;
    }
    EXPECT_FALSE(decode_client_message("[]", false).has_value());
    EXPECT_EQ(
        decode_client_message(R"({"type":"ping"})", true).error().code, Code::invalid_argument
    );
}

TEST(WorkflowsSocket, PreviewsAreFramedAsComfyUiDoes) {
    auto event = fixture::event(jobs::EventType::preview, jobs::State::running);
    event.preview = "\x89PNG";
    event.preview_type = "image/png";
    EXPECT_EQ(encode_preview(event), std::string("\0\0\0\1\0\0\0\2\x89PNG", 12));
    event.preview_type = "image/jpeg";
    EXPECT_EQ(encode_preview(event).substr(0, 8), std::string("\0\0\0\1\0\0\0\1", 8));
}

TEST(WorkflowsDocument, OperationsOfBothVersionsAreToldApart) {
    EXPECT_EQ(operation_execute(kV1).at("operationId"), "executeWorkflowV1");
    EXPECT_TRUE(operation_execute(kV1).at("deprecated").as_bool());
    EXPECT_EQ(operation_execute(kV2).at("operationId"), "executeWorkflowV2");
    EXPECT_FALSE(operation_execute(kV2).contains("deprecated"));
    EXPECT_TRUE(operation_retry(kV2).at("responses").as_object().contains("202"));
    EXPECT_TRUE(schemas().contains("ExecutionResponse"));
}

}  // namespace
}  // namespace comfyd::api::workflows
