#include "api/submission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

std::string with(const std::string& members) {
    return R"({"workflow":{"1":{"class_type":"A","inputs":{}}})" +
           (members.empty() ? "" : "," + members) + "}";
}

std::string message(const net::ClientResponse& response) {
    return std::string(parse(response.body).at("error").at("message").as_string());
}

struct Refused {
    std::string members;
    std::string field;
    std::string says;  // in the message
};

TEST(Submission, EveryBoundIsEnforcedByName) {
    TestApi api;
    const std::vector<Refused> cases{
        {R"("priority":0)", "priority", "is 0, but must be from 1 to 10"},
        {R"("priority":11)", "priority", "is 11, but must be from 1 to 10"},
        {R"("priority":"high")", "priority", "must be an integer"},
        {R"("priority":1.5)", "priority", "must be an integer"},
        {R"("timeout":0.5)", "timeout", "must be from 1 to 604800"},
        {R"("timeout":604801)", "timeout", "is 604801, but must be from 1 to 604800"},
        {R"("timeout":"1")", "timeout", "must be a number"},
        {R"("max_attempts":0)", "max_attempts", "must be from 1 to 10"},
        {R"("max_attempts":11)", "max_attempts", "must be from 1 to 10"},
        {R"("deadline":"soon")", "deadline", "RFC 3339"},
        {R"("deadline":"2001-01-01T00:00:00Z")", "deadline", "it is already"},
        {R"("metadata":[])", "metadata", "must be an object"},
        {R"("metadata":{"x":")" + std::string(17'000, 'x') + "\"}", "metadata", "at most 16384"},
        {R"("webhook_url":7)", "webhook_url", "must be a string"},
        {R"("webhook_url":"ftp://a.example")", "webhook_url", "webhook_url"},
        {R"("webhook_url":"ws://a.example")", "webhook_url", "http://"},
        {R"("webhook_url":"http://user:pw@a.example")", "webhook_url", "webhook_url"},
        {R"("webhook_url":"https://a.example/)" + std::string(2100, 'a') + "\"",
         "webhook_url",
         "at most 2048"},
        {R"("webhook_config":{})", "webhook_config", "url"},
        {R"("webhook_config":{"url":"https://a.example","events":["job.done"]})",
         "webhook_config.events",
         "job.done"},
        {R"("webhook_config":{"url":"https://a.example","headers":{"Host":"b"}})",
         "webhook_config.headers",
         "may not set 'Host'"},
        {R"("webhook_config":{"url":"https://a.example","headers":{"X":"a\r\nb"}})",
         "webhook_config.headers",
         "not valid"},
        {R"("webhook_config":{"url":"https://a.example","secret":")" + std::string(300, 's') +
             "\"}",
         "webhook_config.secret",
         "at most 256"},
        {R"("extra_data":{"password":"x"})", "extra_data", "password"},
        {R"("workflow_id":")" + std::string(256, 'w') + "\"", "workflow_id", "at most 255"},
        {R"("inputs":[])", "inputs", "must be an object"},
    };
    for (const Refused& refused : cases) {
        const auto response = api.post("/api/v2/jobs", with(refused.members));
        const std::string what = refused.members.substr(0, 100);
        ASSERT_EQ(response.status, 422) << what << response.body;
        EXPECT_EQ(error_code(response), "invalid_argument") << what;
        EXPECT_THAT(message(response), HasSubstr(refused.says)) << what;
        EXPECT_EQ(
            parse(response.body).at("error").at("details").at("field"), json::value(refused.field)
        ) << what;
    }
}

TEST(Submission, PrivateWebhooksAreRefusedUnlessAllowed) {
    for (const bool allowed : {false, true}) {
        Arrangement arrangement;
        arrangement.options.allow_private_webhooks = allowed;
        TestApi api(std::move(arrangement));
        for (const char* url :
             {"http://127.0.0.1/x", "http://10.0.0.1:9000", "http://[::1]/", "http://localhost/x"
             }) {
            const auto response =
                api.post("/api/v2/jobs", with(R"("webhook_url":")" + std::string(url) + "\""));
            EXPECT_EQ(response.status, allowed ? 201 : 400) << url;
            if (!allowed) {
                EXPECT_EQ(error_code(response), "address_refused") << url;
            }
        }
    }
}

jobs::Spec submitted_spec(TestApi& api, const std::string& members, net::Headers headers = {}) {
    const auto response = api.post("/api/v2/jobs", with(members), std::move(headers));
    EXPECT_EQ(response.status, 201) << response.body;
    return api.ledger.spec(*JobId::parse(parse(response.body).at("id").as_string()));
}

TEST(Submission, CommonMembersReachTheSpec) {
    TestApi api;
    const jobs::Spec spec = submitted_spec(
        api,
        R"("priority":3.0,"timeout":90.5,"max_attempts":1,"deadline":"2040-01-01T00:00:00Z",)"
        R"("metadata":{"k":"v"},"workflow_id":"w","webhook_config":{"url":"https://a.example/h",)"
        R"("secret":"s","events":["execution.started"],"headers":{"X-Mine":"1"}})",
        header("Idempotency-Key", "\"quoted\"")
    );
    EXPECT_EQ(spec.priority, 3);
    EXPECT_EQ(spec.timeout, Millis(90'500));
    EXPECT_EQ(spec.max_attempts, 1);
    EXPECT_EQ(spec.deadline, parse_rfc3339("2040-01-01T00:00:00Z"));
    EXPECT_EQ(spec.metadata, parse(R"({"k":"v"})"));
    EXPECT_EQ(spec.workflow_id, "w");
    EXPECT_EQ(spec.idempotency_key, "quoted");
    EXPECT_EQ(spec.request_hash.size(), 64U);
    EXPECT_EQ(spec.tenant, "local");
    EXPECT_EQ(spec.dialect, "comfy-v2");
    EXPECT_EQ(spec.node_count, 1);
    EXPECT_EQ(spec.requirement.encoded(), "A");
    ASSERT_TRUE(spec.webhook);
    EXPECT_EQ(spec.webhook->url, "https://a.example/h");
    EXPECT_EQ(spec.webhook->events, std::vector<std::string>{"execution.started"});
}

TEST(Submission, WebhooksMayComeByMemberOrHeader) {
    TestApi api;
    EXPECT_EQ(
        submitted_spec(api, R"("callback_url":"https://b.example")").webhook->url,
        "https://b.example"
    );
    EXPECT_EQ(
        submitted_spec(
            api,
            R"("webhook_url":"https://c.example")",
            header("X-Webhook-URL", "https://d.example")
        )
            .webhook->url,
        "https://c.example"
    );
    EXPECT_EQ(
        submitted_spec(api, "", header("X-Webhook-URL", "https://d.example")).webhook->url,
        "https://d.example"
    );
    EXPECT_EQ(api.post("/api/v2/jobs", with(""), header("X-Webhook-URL", "nonsense")).status, 422);
    EXPECT_FALSE(submitted_spec(api, R"("webhook_url":null)").webhook);
}

TEST(Submission, IdempotencyKeysHaveALimit) {
    TestApi api;
    const auto refused =
        api.post("/api/v2/jobs", with(""), header("Idempotency-Key", std::string(256, 'k')));
    EXPECT_EQ(refused.status, 422);
    EXPECT_THAT(message(refused), HasSubstr("has 256 bytes, but must have from 1 to 255"));
    EXPECT_EQ(api.post("/api/v2/jobs", with(""), header("Idempotency-Key", "\"\"")).status, 422);
}

TEST(Submission, TheRequestHashIgnoresOrderButNotContent) {
    TestApi api;
    const auto hash = [&api](const std::string& body, const std::string& key) {
        const auto response = api.post("/api/v2/jobs", body, header("Idempotency-Key", key));
        EXPECT_EQ(response.status, 201) << response.body;
        return api.ledger.spec(*JobId::parse(parse(response.body).at("id").as_string()))
            .request_hash;
    };
    const std::string one =
        hash(R"({"workflow":{"1":{"class_type":"A","inputs":{"a":1,"b":2}}},"priority":2})", "1");
    const std::string two =
        hash(R"({"priority":2,"workflow":{"1":{"inputs":{"b":2,"a":1},"class_type":"A"}}})", "2");
    const std::string three =
        hash(R"({"priority":2,"workflow":{"1":{"inputs":{"b":3,"a":1},"class_type":"A"}}})", "3");
    const std::string four =
        hash(R"({"priority":3,"workflow":{"1":{"inputs":{"b":2,"a":1},"class_type":"A"}}})", "4");
    EXPECT_EQ(one, two);
    EXPECT_NE(one, three);
    EXPECT_NE(one, four);
}

TEST(Submission, BodiesThatAreNoJsonObjectAreRefused) {
    TestApi api;
    EXPECT_EQ(error_code(api.post("/api/v2/jobs", "{\"workflow\":")), "malformed_json");
    EXPECT_EQ(api.post("/api/v2/jobs", "{\"workflow\":").status, 400);
    EXPECT_EQ(error_code(api.post("/api/v2/jobs", "[]")), "invalid_argument");
    EXPECT_EQ(error_code(api.post("/api/v2/jobs", "  ")), "invalid_argument");
    EXPECT_EQ(error_code(api.post("/api/v2/jobs", "{}")), "invalid_workflow");
    EXPECT_EQ(error_code(api.post("/api/v2/jobs", R"({"workflow":"x"})")), "invalid_workflow");
    EXPECT_EQ(
        api.send("POST", "/api/v2/jobs", with(""), header("Content-Encoding", "gzip")).status, 415
    );
    EXPECT_EQ(
        api.send(
               "POST",
               "/api/v2/jobs",
               "x",
               header("Content-Type", "multipart/form-data; boundary=x")
        )
            .status,
        415
    );
    EXPECT_EQ(api.send("POST", "/api/v2/jobs", with("")).status, 201);
}

TEST(Submission, LargeBodiesAreRefused) {
    Arrangement arrangement;
    arrangement.options.json_body_bytes_max = 1000;
    TestApi api(std::move(arrangement));
    const auto refused = api.post("/api/v2/jobs", with(R"("x":")" + std::string(1000, 'x') + "\""));
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(error_code(refused), "payload_too_large");
}

TEST(Submission, WorkflowsThatCannotRunAreRefused) {
    TestApi api;
    const auto broken =
        api.post("/api/v2/jobs", R"({"workflow":{"1":{"class_type":"A","inputs":{"x":["9",0]}}}})");
    EXPECT_EQ(broken.status, 422);
    EXPECT_EQ(error_code(broken), "invalid_workflow");
    EXPECT_EQ(
        parse(broken.body).at("error").at("details").at("node_errors").at("1").as_array().at(0),
        parse(R"({"field":"x","reason":"bad_linked_input"})")
    );
    const auto editor = api.post(
        "/api/v2/jobs",
        R"({"workflow":{"nodes":[],"links":[],"last_node_id":0},"inputs":{"1.a":2}})"
    );
    EXPECT_EQ(editor.status, 422);
    EXPECT_EQ(error_code(editor), "workflow_format_ui");
    EXPECT_EQ(
        api.post("/api/v2/jobs", R"({"workflow":{"prompt":{"1":{"class_type":"A","inputs":{}}}}})")
            .status,
        201
    );
}

// One worker with a class that loads and one that saves.
Arrangement with_classes() {
    Arrangement arrangement;
    arrangement.catalogue = test::catalogue_of(R"({
        "Load": {"input": {"required": {"name": [["a", "b"]], "text": ["STRING",
                 {"dynamicPrompts": true}]}}, "output": ["IMAGE"]},
        "Save": {"input": {"required": {"images": ["IMAGE"]}}, "output": [], "output_node": true}
    })");
    return arrangement;
}

constexpr std::string_view kEditorWorkflow = R"({"version":0.4,"nodes":[
    {"id":1,"type":"Load","widgets_values":["b","{x|y|z|1|2|3|4|5|6|7|8|9}"]},
    {"id":2,"type":"Save","inputs":[{"name":"images","link":1}]}],
    "links":[[1,1,0,2,0,"IMAGE"]]})";

TEST(Submission, TheEditorsFormatIsConverted) {
    TestApi api(with_classes());
    const std::string body = R"({"workflow":)" + std::string(kEditorWorkflow) + "}";
    const auto first =
        api.send("POST", "/v2/workflows/execute", body, header("Idempotency-Key", "editor"));
    ASSERT_LT(first.status, 300) << first.body;
    // Its words are chosen by chance, and yet it is the same request.
    const auto again =
        api.send("POST", "/v2/workflows/execute", body, header("Idempotency-Key", "editor"));
    EXPECT_LT(again.status, 300) << again.body;
    EXPECT_EQ(parse(again.body).at("execution_id"), parse(first.body).at("execution_id"));
    const auto runpod = api.post("/runpod/v2/sdxl/run", R"({"input":)" + body + "}");
    EXPECT_EQ(runpod.status, 200) << runpod.body;
    const auto id = JobId::parse(parse(first.body).at("execution_id").as_string());
    ASSERT_TRUE(id);
    const json::value stored = parse(api.ledger.spec(*id).workflow);
    EXPECT_EQ(stored.at("1").at("inputs").at("name"), "b");
    EXPECT_EQ(stored.at("1").at("inputs").at("text").as_string().size(), 1U);
    EXPECT_EQ(stored.at("2").at("inputs").at("images"), (json::array{"1", 0}));
}

TEST(Submission, TheEditorsFormatIsRefusedWithTheNameOfTheNode) {
    TestApi api(with_classes());
    const auto refused = api.post(
        "/v2/workflows/execute", R"({"workflow":{"nodes":[{"id":7,"type":"Nope"}],"links":[]}})"
    );
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("no worker has the node class 'Nope' (node 7)"));
    const auto contract =
        api.post("/api/v2/jobs", R"({"workflow":)" + std::string(kEditorWorkflow) + "}");
    EXPECT_EQ(contract.status, 422);
    EXPECT_EQ(error_code(contract), "workflow_format_ui");
}

TEST(BaseUrl, ComesFromTheConfigurationOrTheRequest) {
    net::Request request;
    ApiOptions options;
    request.headers.set("Host", "gpu.example:8080");
    EXPECT_EQ(base_url(request, options), "http://gpu.example:8080");
    request.headers.set("Host", "[::1]:80");
    EXPECT_EQ(base_url(request, options), "http://[::1]:80");
    request.headers.set("Host", "evil/\"><script>");
    EXPECT_EQ(base_url(request, options), "http://localhost");
    options.public_url = "https://api.example/base/";
    EXPECT_EQ(base_url(request, options), "https://api.example/base");
}

}  // namespace
}  // namespace comfyd::api
