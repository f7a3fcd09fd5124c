// Workflows that come as pictures and files, or by where they are to be had, at every door.
#include "api/workflow_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/dialects.hpp"
#include "api/test_support.hpp"
#include "assets/test_support.hpp"
#include "base/crypto.hpp"
#include "workflow/files/picture_test_support.hpp"

namespace comfyd::api {
namespace {

using assets::test::FileServer;
using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;
using workflow::test::png;
using workflow::test::text_chunk;

constexpr std::string_view kPrompt =
    R"({"1":{"class_type":"EmptyImage","inputs":{"width":8}},)"
    R"("2":{"class_type":"SaveImage","inputs":{"images":["1",0]}}})";
constexpr std::string_view kEditor = R"({"nodes":[{"id":1,"type":"A"}],"links":[],"version":0.4})";

std::string saved_picture() {
    return png(text_chunk("workflow", kEditor) + text_chunk("prompt", kPrompt));
}

std::string data_url(const std::string& bytes) {
    return "data:image/png;base64," + to_base64(bytes);
}

Arrangement on_loopback() {
    Arrangement arrangement;
    arrangement.admission.security.allow_private_hosts = true;
    return arrangement;
}

struct Door {
    const char* path;
    const char* member;  // "input.workflow" stands inside an object
    const char* id;
};
constexpr std::array<Door, 6> kDoors{{
    {"/v1/workflows/execute", "workflow", "execution_id"},
    {"/v2/workflows/execute", "workflow", "execution_id"},
    {"/comfyui/execute", "workflow", "execution_id"},
    {"/api/v1/tasks", "payload", "id"},
    {"/api/v2/jobs", "workflow", "id"},
    {"/runpod/v2/e/run", "input.workflow", "id"},
}};

std::string body_for(const Door& door, const std::string& source) {
    json::object body{{std::string(door.member), source}};
    if (std::string_view(door.member) == "input.workflow") {
        body = json::object{{"input", {{"workflow", source}}}};
    }
    return json::serialize(body);
}

class WorkflowSource : public testing::Test {
protected:
    explicit WorkflowSource(Arrangement setup = on_loopback()) : api(std::move(setup)) {}

    net::ClientResponse post_picture(
        const std::string& path, const std::string& bytes, net::Headers headers = {}
    ) {
        headers.set("Content-Type", "image/png");
        return api.send("POST", path, bytes, std::move(headers));
    }
    jobs::Spec spec_of(const net::ClientResponse& response, const char* id = "execution_id") {
        EXPECT_LT(response.status, 300) << response.body;
        const json::object answer = parse(response.body);
        return answer.contains(id)
                   ? api.ledger.spec(*JobId::parse(std::string_view(answer.at(id).as_string())))
                   : jobs::Spec();
    }
    static std::string message_of(const net::ClientResponse& response) {
        const json::object body = parse(response.body);
        const json::value* error = json::find(body, "error");
        const json::value* inner = error != nullptr && error->is_object()
                                       ? json::find(error->get_object(), "message")
                                       : nullptr;
        return inner != nullptr ? std::string(inner->as_string()) : response.body;
    }

    TestApi api;
};

TEST_F(WorkflowSource, APictureIsABody) {
    for (const char* path :
         {"/v1/workflows/execute?priority=9",
          "/v2/workflows/execute?priority=9",
          "/comfyui/execute?priority=9"}) {
        const auto spec = spec_of(post_picture(path, saved_picture()));
        EXPECT_EQ(parse(spec.workflow), parse(std::string(kPrompt))) << path;
        EXPECT_EQ(spec.priority, 9) << path;
    }
    const auto first =
        post_picture("/v2/workflows/execute", saved_picture(), header("Idempotency-Key", "k"));
    const auto again =
        post_picture("/v2/workflows/execute", saved_picture(), header("Idempotency-Key", "k"));
    EXPECT_EQ(parse(first.body).at("execution_id"), parse(again.body).at("execution_id"));
    const auto validated =
        parse(post_picture("/v2/workflows/validate?plan=true", saved_picture()).body);
    EXPECT_EQ(validated.at("valid"), true) << json::serialize(validated);
    EXPECT_TRUE(validated.contains("plan"));
    EXPECT_EQ(post_picture("/v2/workflows/plan", saved_picture()).status, 200);
    net::Headers file;
    file.set("Content-Type", "application/octet-stream");
    EXPECT_EQ(api.send("POST", "/v2/workflows/execute", std::string(kPrompt), file).status, 202);
}

TEST_F(WorkflowSource, AFormHasTheFileAndTheOptions) {
    const net::Multipart form = net::make_multipart({
        {"workflow", "saved.png", "image/png", saved_picture()},
        {"priority", std::nullopt, "", "8"},
        {"input_params", std::nullopt, "application/json", R"({"1.width": 16})"},
        {"callback_url", std::nullopt, "", "https://example.com/hook"},
    });
    const auto spec = spec_of(api.send(
        "POST", "/v2/workflows/execute", form.body, header("Content-Type", form.content_type)
    ));
    EXPECT_EQ(spec.priority, 8);
    EXPECT_EQ(parse(spec.workflow).at("1").at("inputs").at("width"), 16);
    EXPECT_EQ(spec.webhook->url, "https://example.com/hook");
    const net::Multipart empty = net::make_multipart({{"priority", std::nullopt, "", "8"}});
    const auto refused = api.send(
        "POST", "/v2/workflows/execute", empty.body, header("Content-Type", empty.content_type)
    );
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(message_of(refused), HasSubstr("'workflow' is missing"));
}

TEST_F(WorkflowSource, EveryDoorTakesWhereTheWorkflowIs) {
    FileServer server;
    server.put("/saved.png", "image/png", saved_picture());
    server.put("/flow.json", "application/json", std::string(kPrompt));
    const auto uploaded = parse(api.upload({{"file", "s.png", "image/png", saved_picture()}}).body);
    const std::vector<std::string> sources{
        data_url(saved_picture()),
        data_url(std::string(kPrompt)),
        "asset:" + std::string(uploaded.at("id").as_string()),
        std::string(uploaded.at("hash").as_string()),
        server.url("/saved.png"),
        server.url("/flow.json"),
    };
    for (const Door& door : kDoors) {
        for (const std::string& source : sources) {
            const auto response = api.post(door.path, body_for(door, source));
            const auto spec = spec_of(response, door.id);
            EXPECT_EQ(parse(spec.workflow), parse(std::string(kPrompt)))
                << door.path << " " << source.substr(0, 40);
        }
    }
    const json::object checked =
        parse(api.post("/v2/workflows/validate", body_for(kDoors[1], server.url("/saved.png"))).body
        );
    EXPECT_EQ(checked.at("valid"), true) << json::serialize(checked);
    // What came from an address is not kept, what was uploaded is.
    EXPECT_EQ(api.get("/api/v2/assets/" + std::string(uploaded.at("id").as_string())).status, 200);
}

TEST_F(WorkflowSource, ErrorsSayWhatWasFound) {
    const auto refused =
        post_picture("/v2/workflows/execute", png(text_chunk("parameters", "cat")));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(message_of(refused), HasSubstr("of texts it has 'parameters'"));
    for (const Door& door : kDoors) {
        const auto no_workflow = api.post(door.path, body_for(door, data_url(png(""))));
        EXPECT_GE(no_workflow.status, 400) << door.path;
        EXPECT_LT(no_workflow.status, 500) << door.path;
        EXPECT_THAT(no_workflow.body, HasSubstr("PNG picture holds no workflow")) << door.path;
        const auto no_file = api.post(door.path, body_for(door, "data:image/png;base64,?"));
        EXPECT_THAT(no_file.body, HasSubstr("not base64")) << door.path;
        EXPECT_GE(api.post(door.path, body_for(door, "no/such thing")).status, 400) << door.path;
    }
    const auto jpeg =
        api.post("/v2/workflows/execute", body_for(kDoors[1], data_url("\xff\xd8\xff\xe0 JFIF")));
    EXPECT_THAT(message_of(jpeg), HasSubstr("JPEG picture"));
    EXPECT_EQ(api.post("/v2/workflows/execute", R"({"workflow": 7})").status, 400);
}

struct GuardedSource : WorkflowSource {
    GuardedSource() : WorkflowSource(Arrangement{}) {}
};

TEST_F(GuardedSource, TheRulesOfInputsHold) {
    FileServer server;
    server.put("/saved.png", "image/png", saved_picture());
    for (const Door& door : kDoors) {
        const auto response = api.post(door.path, body_for(door, server.url("/saved.png")));
        EXPECT_GE(response.status, 400) << door.path;
        EXPECT_THAT(response.body, HasSubstr("UNAUTHORIZED_DOMAIN")) << door.path;
    }
    EXPECT_EQ(server.asked("/saved.png"), 0);
    const auto missing = api.post("/api/v2/jobs", body_for(kDoors[4], "asset:nonsense"));
    EXPECT_EQ(error_code(missing), "missing_asset") << missing.body;
}

TEST_F(WorkflowSource, ARepetitionFetchesNothing) {
    FileServer server;
    server.put("/saved.png", "image/png", saved_picture());
    int expected = 0;
    for (const Door& door : kDoors) {
        const auto key = header("Idempotency-Key", door.path);
        const std::string body = body_for(door, server.url("/saved.png"));
        const auto first = api.post(door.path, body, key);
        EXPECT_LT(first.status, 300) << first.body;
        EXPECT_EQ(server.asked("/saved.png"), ++expected) << door.path;
        const auto again = api.post(door.path, body, key);
        EXPECT_EQ(server.asked("/saved.png"), expected) << door.path;
        if (std::string_view(door.path) == "/api/v2/jobs") {
            EXPECT_EQ(error_code(again), "idempotency_key_reuse");
        } else {
            EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true") << again.body;
        }
        const auto other = api.post(door.path, body_for(door, server.url("/other.png")), key);
        EXPECT_EQ(other.status, 422) << door.path << other.body;
        EXPECT_EQ(server.asked("/other.png"), 0);
    }
}

TEST_F(WorkflowSource, ANamedWorkflowIsMadeFromAPicture) {
    net::Headers headers;
    headers.set("Content-Type", "image/png");
    const auto put = api.send("PUT", "/v2/workflows/saved", saved_picture(), headers);
    ASSERT_EQ(put.status, 201) << put.body;
    EXPECT_EQ(parse(put.body).at("workflow"), parse(std::string(kPrompt)));
    const auto again = api.send(
        "PUT",
        "/v2/workflows/saved",
        json::serialize(json::object{{"workflow", data_url(saved_picture())}}),
        header("Content-Type", "application/json")
    );
    EXPECT_EQ(again.status, 200) << again.body;  // the same content
    const auto refused = api.send("PUT", "/v2/workflows/saved", png(""), headers);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(message_of(refused), HasSubstr("PNG picture holds no workflow"));
    const auto spec = spec_of(api.post("/v2/workflows/saved/run", "{}"));
    EXPECT_EQ(parse(spec.workflow), parse(std::string(kPrompt)));
}

TEST_F(WorkflowSource, RunPodFindsNamedWorkflows) {
    const std::string stored =
        R"({"workflow": )" + std::string(kPrompt) + R"(, "parameters": {"size": "1.width"}})";
    ASSERT_EQ(
        api.send("PUT", "/v2/workflows/square", stored, header("Content-Type", "application/json"))
            .status,
        201
    );
    const auto run = [this](const std::string& input, net::Headers headers = {}) {
        return api.post("/runpod/v2/e/run", R"({"input": )" + input + "}", std::move(headers));
    };
    for (const char* input :
         {R"({"workflow_id": "square", "params": {"size": 32}})",
          R"({"workflow": "square@1", "params": {"size": 32}})"}) {
        const auto spec = spec_of(run(input), "id");
        EXPECT_EQ(parse(spec.workflow).at("1").at("inputs").at("width"), 32) << input;
        EXPECT_EQ(spec.workflow_id, "e");
        EXPECT_EQ(spec.dialect_data.at("workflow_version"), 1);
        EXPECT_EQ(spec.dialect_data.at("named_workflow"), "square");
    }
    EXPECT_EQ(run(R"({"workflow_id": "circle"})").status, 404);
    EXPECT_EQ(run(R"({"workflow_id": "Not A Name"})").status, 400);
    EXPECT_EQ(run(R"({"workflow_id": "square", "params": {"colour": 1}})").status, 400);
    const auto key = header("Idempotency-Key", "k");
    const auto first = run(R"({"workflow_id": "square"})", key);
    ASSERT_EQ(api.send("DELETE", "/v2/workflows/square", "").status, 204);
    const auto again = run(R"({"workflow_id": "square"})", key);
    EXPECT_EQ(parse(again.body).at("id"), parse(first.body).at("id")) << again.body;
}

TEST_F(WorkflowSource, RunPodPutsPicturesIntoAFetchedWorkflow) {
    const std::string flow = R"({"1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})";
    const json::object body{
        {"input",
         {{"workflow", data_url(flow)},
          {"images", json::array{json::object{{"name", "a.png"}, {"image", to_base64("picture")}}}}}
        }
    };
    const auto spec = spec_of(api.post("/runpod/v2/e/run", json::serialize(body)), "id");
    EXPECT_TRUE(parse(spec.workflow).at("1").at("inputs").at("image").is_object());
}

}  // namespace
}  // namespace comfyd::api
