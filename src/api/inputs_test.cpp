// Files that submissions name by address or content, in every dialect, over real sockets.
#include "admission/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_support.hpp"
#include "assets/blake3.hpp"
#include "assets/test_support.hpp"
#include "base/crypto.hpp"

namespace comfyd::api {
namespace {

using assets::test::FileServer;
using assets::test::picture;
using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

Arrangement on_loopback() {
    Arrangement arrangement;
    arrangement.admission.security.allow_private_hosts = true;
    return arrangement;
}

json::object workflow_with(const std::string& source) {
    json::object made = parse(R"({
        "1": {"class_type": "LoadImage", "inputs": {}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})");
    made["1"].at("inputs").as_object()["image"] = source;
    return made;
}

std::string job_with(const std::string& source) {
    return json::serialize(json::object{{"workflow", workflow_with(source)}});
}

std::string data_url() {
    return "data:image/png;base64," + to_base64(picture());
}

// What the job that was submitted has in the place of the file.
json::object placed(TestApi& api, const std::string& id) {
    const json::object graph = parse(api.ledger.spec(*JobId::parse(id)).workflow);
    const json::value& image = graph.at("1").at("inputs").at("image");
    EXPECT_TRUE(image.is_object()) << json::serialize(image);
    return image.is_object() ? image.at("info").as_object() : json::object();
}

json::object finding(const net::ClientResponse& response) {
    EXPECT_EQ(response.status, 422) << response.body;
    EXPECT_EQ(error_code(response), "invalid_workflow");
    const json::object body = parse(response.body);
    return body.at("error").at("details").at("findings").at(0).as_object();
}

TEST(Inputs, EveryDialectFetchesAddresses) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    const std::string url = server.url("/cat.png");
    TestApi api(on_loopback());
    struct Case {
        const char* path;
        json::object body;
        const char* id;
    };
    const json::object plain = workflow_with(url);
    const json::object named = workflow_with("other.png");
    const std::vector<Case> cases{
        {"/api/v2/jobs", {{"workflow", plain}}, "id"},
        {"/api/v2/jobs", {{"workflow", named}, {"inputs", {{"1.image", url}}}}, "id"},
        {"/v1/workflows/execute", {{"workflow", plain}}, "execution_id"},
        {"/v2/workflows/execute",
         {{"workflow", named}, {"input_params", {{"image", url}}}},
         "execution_id"},
        {"/comfyui/execute",
         {{"workflow",
           {{"nodes", named}, {"links", json::array{json::array{"1", 0, "2", "images"}}}}},
          {"inputs", {{"image", url}}}},
         "execution_id"},
        {"/api/v1/tasks", {{"payload", plain}}, "id"},
        {"/runpod/v2/e/run", {{"input", {{"workflow", plain}}}}, "id"},
        {"/runpod/v2/e/run",
         {{"input",
           {{"workflow", named},
            {"images", json::array{json::object{{"name", "other.png"}, {"image", url}}}}}}},
         "id"},
    };
    for (const Case& one : cases) {
        const auto response = api.post(one.path, json::serialize(one.body));
        ASSERT_LT(response.status, 300) << one.path << response.body;
        const json::object answer = parse(response.body);
        const json::object info = placed(api, std::string(answer.at(one.id).as_string()));
        EXPECT_EQ(info.at("hash"), json::value(assets::blake3_name(picture()))) << one.path;
        EXPECT_TRUE(info.at("file_path").as_string().ends_with(".png")) << one.path;
        EXPECT_FALSE(info.contains("id")) << one.path;
    }
    EXPECT_EQ(server.asked("/cat.png"), static_cast<int>(cases.size()));
}

TEST(Inputs, ContentAssetsAndHashes) {
    TestApi api;
    const auto uploaded = parse(api.upload({{"file", "up.png", "image/png", picture()}}).body);
    const std::string id(uploaded.at("id").as_string());
    const std::string hash(uploaded.at("hash").as_string());
    for (const std::string& source : {data_url(), "asset:" + id, hash}) {
        const auto response = api.post("/api/v2/jobs", job_with(source));
        ASSERT_EQ(response.status, 201) << response.body;
        const json::object info =
            placed(api, std::string(parse(response.body).at("id").as_string()));
        EXPECT_EQ(info.at("hash"), json::value(hash));
        EXPECT_EQ(info.contains("id"), source.starts_with("asset:"));
        EXPECT_EQ(info.at("name"), json::value(source.starts_with("data:") ? hash : source));
    }
}

TEST(Inputs, AssetsOfOthersAreRefused) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("sesame")}, {"b", "bolt", auth::hash_key("open it")}
    };
    TestApi api(std::move(arrangement));
    const auto acme = header("Authorization", "Bearer sesame");
    const auto bolt = header("Authorization", "Bearer open it");
    const auto uploaded = parse(api.upload({{"file", "a.png", "image/png", picture()}}, acme).body);
    for (const std::string& source :
         {"asset:" + std::string(uploaded.at("id").as_string()),
          std::string(uploaded.at("hash").as_string()),
          std::string("asset:nonsense")}) {
        const auto response = api.post("/api/v2/jobs", job_with(source), bolt);
        EXPECT_EQ(response.status, 422) << response.body;
        EXPECT_EQ(error_code(response), "missing_asset");
        const json::object body = parse(response.body);
        EXPECT_EQ(
            body.at("error").at("details").at("node_errors").at("1").at(0).at("field"), "image"
        );
    }
}

TEST(Inputs, PrivateAddressesAreRefusedUnlessAllowed) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    TestApi api;
    for (const char* host : {"127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"}) {
        const auto response = api.post("/api/v2/jobs", job_with(server.url("/cat.png", host)));
        EXPECT_EQ(finding(response).at("code"), "UNAUTHORIZED_DOMAIN") << host;
    }
    EXPECT_EQ(server.asked("/cat.png"), 0);

    Arrangement named;  // by an operator, who means it
    named.admission.security.allowed_domains = {"127.0.0.1"};
    TestApi careful(std::move(named));
    EXPECT_EQ(careful.post("/api/v2/jobs", job_with(server.url("/cat.png"))).status, 201);
    server.redirect("/hop.png", server.url("/cat.png", "localhost"));
    const json::object refused =
        finding(careful.post("/api/v2/jobs", job_with(server.url("/hop.png"))));
    EXPECT_EQ(refused.at("code"), "UNAUTHORIZED_DOMAIN");
    EXPECT_EQ(refused.at("node_id"), "1");
    EXPECT_EQ(refused.at("input"), "image");
    EXPECT_EQ(refused.at("class_type"), "LoadImage");
}

TEST(Inputs, WhatCannotBeHadIsSaidAtTheNode) {
    FileServer server;
    server.put("/page", "text/html", "<html>no picture</html>");
    server.put("/silent", FileServer::Page{.is_silent = true});
    FileServer::Page endless;
    endless.is_endless = true;
    endless.body = picture(64 * 1024);
    server.put("/endless", endless);
    Arrangement arrangement = on_loopback();
    arrangement.admission.inputs.bytes_max = 1024 * 1024;
    arrangement.admission.inputs.timeout = Millis(200);
    TestApi api(std::move(arrangement));
    const auto code = [&](const std::string& source) {
        const json::object found = finding(api.post("/api/v2/jobs", job_with(source)));
        EXPECT_THAT(std::string(found.at("message").as_string()), HasSubstr("node 1 (LoadImage)"));
        return std::string(found.at("code").as_string());
    };
    EXPECT_EQ(code(server.url("/page")), "INVALID_CONTENT_TYPE");
    EXPECT_EQ(code(server.url("/missing")), "URL_NOT_ACCESSIBLE");
    EXPECT_EQ(code(server.url("/silent")), "URL_NOT_ACCESSIBLE");
    EXPECT_EQ(code("data:image/png;base64,*"), "INVALID_FILE_SOURCE");
    EXPECT_EQ(code("data:image/png;base64," + to_base64("text")), "INVALID_CONTENT_TYPE");
    EXPECT_EQ(
        code("data:image/png;base64," + to_base64(picture(2 * 1024 * 1024))), "FILE_TOO_LARGE"
    );
}

TEST(Inputs, TooLargeStopsEarly) {
    FileServer server;
    FileServer::Page endless;
    endless.is_endless = true;
    endless.body = picture(64 * 1024);
    server.put("/endless", endless);
    Arrangement arrangement = on_loopback();
    arrangement.admission.inputs.bytes_max = 1024 * 1024;
    TestApi api(std::move(arrangement));
    const auto response = api.post("/api/v2/jobs", job_with(server.url("/endless")));
    EXPECT_EQ(finding(response).at("code"), "FILE_TOO_LARGE");
    EXPECT_LT(server.endless_bytes(), 64U * 1024 * 1024);
}

TEST(Inputs, AllThatIsWrongIsListed) {
    FileServer server;
    TestApi api(on_loopback());
    json::object graph = workflow_with(server.url("/a.png"));
    graph["3"] = json::object{
        {"class_type", "LoadAudio"}, {"inputs", {{"audio", "data:audio/wav;base64,?"}}}
    };
    const auto response =
        api.post("/api/v2/jobs", json::serialize(json::object{{"workflow", graph}}));
    const json::object body = parse(response.body);
    EXPECT_EQ(body.at("error").at("details").at("findings").as_array().size(), 2U) << response.body;
    EXPECT_TRUE(body.at("error").at("details").at("node_errors").as_object().contains("3"));
}

TEST(Inputs, TextsAndBadWorkflowsFetchNothing) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    TestApi api(on_loopback());
    const std::string url = server.url("/cat.png");
    json::object prompt = workflow_with("cat.png");
    prompt["3"] = json::object{{"class_type", "CLIPTextEncode"}, {"inputs", {{"text", url}}}};
    EXPECT_EQ(
        api.post("/api/v2/jobs", json::serialize(json::object{{"workflow", prompt}})).status, 201
    );
    json::object broken = workflow_with(url);
    broken["2"].at("inputs").as_object()["images"] = json::array{"9", 0};
    EXPECT_EQ(
        api.post("/api/v2/jobs", json::serialize(json::object{{"workflow", broken}})).status, 422
    );
    EXPECT_EQ(api.post("/v2/workflows/validate", job_with(url)).status, 200);
    EXPECT_EQ(server.asked("/cat.png"), 0);
}

TEST(Inputs, ARepeatedRequestIsToldByWhatWasSent) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    TestApi api(on_loopback());
    const auto submit = [&](const std::string& path) {
        const std::string body =
            json::serialize(json::object{{"workflow", workflow_with(server.url(path))}});
        return api.post("/v2/workflows/execute", body, header("Idempotency-Key", "k"));
    };
    const auto first = submit("/cat.png");
    ASSERT_EQ(first.status, 202) << first.body;
    server.put("/cat.png", "image/png", picture(5, 'y'));
    const auto again = submit("/cat.png");
    EXPECT_EQ(server.asked("/cat.png"), 1);
    EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true") << again.body;
    server.put("/dog.png", "image/png", picture());
    EXPECT_EQ(submit("/dog.png").status, 422);
}

TEST(Inputs, RepetitionsFetchNothingInAnyDialect) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    TestApi api(on_loopback());
    const json::object flow = workflow_with(server.url("/cat.png"));
    const json::object image{{"name", "other.png"}, {"image", server.url("/cat.png")}};
    const std::vector<std::pair<const char*, json::object>> requests{
        {"/v1/workflows/execute", {{"workflow", flow}}},
        {"/comfyui/execute", {{"workflow", flow}}},
        {"/api/v1/tasks", {{"payload", flow}}},
        {"/api/v2/jobs", {{"workflow", flow}}},
        {"/runpod/v2/e/run", {{"input", {{"workflow", flow}}}}},
        {"/runpod/v2/f/run",
         {{"input", {{"workflow", workflow_with("other.png")}, {"images", json::array{image}}}}}},
    };
    int expected = 0;
    for (const auto& [path, body] : requests) {
        const auto key = header("Idempotency-Key", path);
        EXPECT_LT(api.post(path, json::serialize(body), key).status, 300) << path;
        ++expected;
        const auto again = api.post(path, json::serialize(body), key);
        EXPECT_EQ(again.status < 300, std::string_view(path) != "/api/v2/jobs") << again.body;
        EXPECT_EQ(server.asked("/cat.png"), expected) << path;
    }
}

TEST(Inputs, AListOfFilesIsFetchedLikeOne) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    TestApi api(on_loopback());
    const json::array files{server.url("/cat.png"), "mine.png", data_url()};
    for (const json::value& list : {json::value(files), json::value({{"__value__", files}})}) {
        json::object graph = workflow_with("");
        graph["1"].at("inputs").as_object()["image"] = list;
        const auto response =
            api.post("/api/v2/jobs", json::serialize(json::object{{"workflow", graph}}));
        ASSERT_EQ(response.status, 201) << response.body;
        const JobId id = *JobId::parse(std::string_view(parse(response.body).at("id").as_string()));
        const json::object stored = parse(api.ledger.spec(id).workflow);
        const json::value& placed_list = stored.at("1").at("inputs").at("image").at("__value__");
        const json::value hash(assets::blake3_name(picture()));
        EXPECT_EQ(placed_list.at(0).at("info").at("hash"), hash);
        EXPECT_EQ(placed_list.at(1), "mine.png");
        EXPECT_EQ(placed_list.at(2).at("info").at("hash"), hash);
    }
    json::object graph = workflow_with("");
    graph["1"].at("inputs").as_object()["image"] = json::array{server.url("/dog.png"), "mine.png"};
    const auto refused =
        api.post("/api/v2/jobs", json::serialize(json::object{{"workflow", graph}}));
    EXPECT_EQ(finding(refused).at("code"), "URL_NOT_ACCESSIBLE");
}

TEST(Inputs, RequestsThatFetchAreCounted) {
    FileServer server;
    server.put("/cat.png", "image/png", picture());
    Arrangement arrangement = on_loopback();
    arrangement.admission.fetches_max = 0;
    TestApi api(std::move(arrangement));
    const auto response = api.post("/api/v2/jobs", job_with(server.url("/cat.png")));
    EXPECT_EQ(response.status, 429) << response.body;
    EXPECT_EQ(error_code(response), "rate_limited");
    EXPECT_EQ(api.post("/api/v2/jobs", job_with(data_url())).status, 201);
    EXPECT_EQ(api.services.fetches->load(), 0U);
}

TEST(Inputs, UploadsWithTheSameKeyAreOne) {
    TestApi api;
    const auto upload = [&api](std::string bytes, const char* key) {
        return api.upload(
            {{"file", "a.png", "image/png", std::move(bytes)}}, header("Idempotency-Key", key)
        );
    };
    const auto first = upload(picture(), "\"k\"");
    EXPECT_EQ(first.status, 201);
    const auto again = upload(picture(), "k");
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
    EXPECT_EQ(parse(again.body).at("id"), parse(first.body).at("id"));
    const auto other = upload(picture(7), "k");
    EXPECT_EQ(other.status, 422);
    EXPECT_EQ(error_code(other), "idempotency_key_reuse");
    EXPECT_NE(parse(upload(picture(), "k2").body).at("id"), parse(first.body).at("id"));
    EXPECT_EQ(upload(picture(), std::string(300, 'k').c_str()).status, 422);
    const std::string by_hash =
        json::serialize(json::object{{"hash", parse(first.body).at("hash")}});
    const auto made = api.post("/api/v2/assets/from-hash", by_hash, header("Idempotency-Key", "k"));
    EXPECT_EQ(parse(made.body).at("id"), parse(first.body).at("id"));
}

}  // namespace
}  // namespace comfyd::api
