// Event streams for pages, which can send no key in a header.
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::header;
using test::parse;
using test::TestApi;

constexpr const char* kWorkflow =
    R"({"workflow": {"1": {"class_type": "EmptyImage", "inputs": {"width": 8}},
                     "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}})";

const net::Headers kAcme = header("Authorization", "Bearer sesame");
const net::Headers kOther = header("Authorization", "Bearer abracadabra");

Arrangement with_keys() {
    Arrangement setup;
    setup.keys = {
        {"ci", "acme", auth::hash_key("sesame")}, {"x", "other", auth::hash_key("abracadabra")}
    };
    return setup;
}

std::string text(const json::object& from, std::string_view key) {
    return std::string(from.at(key).as_string());
}

std::string submit(TestApi& api, const net::Headers& who) {
    const auto made = api.post("/v2/workflows/execute", kWorkflow, who);
    EXPECT_EQ(made.status, 202) << made.body;
    return text(parse(made.body), "execution_id");
}

std::string ticket(TestApi& api, const net::Headers& who, const std::string& body = {}) {
    const auto made = api.send("POST", "/v2/stream-tickets", body, who);
    EXPECT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.headers.get("Cache-Control"), "no-store");
    return text(parse(made.body), "ticket");
}

std::vector<std::string> streams_of(const std::string& id) {
    return {
        "/v2/workflows/execution/" + id + "/events",
        "/v1/workflows/execution/" + id + "/events",
        "/api/v2/jobs/" + id + "/events",
        "/api/v1/tasks/" + id + "/events",
        "/comfyui/execution/" + id + "/events",
    };
}

TEST(StreamTickets, OpenTheStreamsOfTheirTenant) {
    TestApi api(with_keys());
    api.open_worker();
    const std::string id = submit(api, kAcme);
    const std::string mine = "?ticket=" + ticket(api, kAcme);
    const std::string foreign = "?ticket=" + ticket(api, kOther);
    for (const std::string& stream : streams_of(id)) {
        EXPECT_EQ(api.get(stream).status, 401) << stream;
        EXPECT_EQ(api.get(stream + mine).status, 200) << stream;
        EXPECT_EQ(api.get(stream + foreign).status, 404) << stream;
        EXPECT_EQ(api.get(stream + mine + "x").status, 401) << stream;
    }
}

TEST(StreamTickets, OfOneExecutionOpenItsStreamsAlone) {
    TestApi api(with_keys());
    api.open_worker();
    const std::string one = submit(api, kAcme);
    const std::string another = submit(api, kAcme);
    const std::string request = R"({"execution_id":")" + one + R"("})";
    const std::string bound = "?ticket=" + ticket(api, kAcme, request);
    for (const std::string& stream : streams_of(one)) {
        EXPECT_EQ(api.get(stream + bound).status, 200) << stream;
    }
    for (const std::string& stream : streams_of(another)) {
        EXPECT_EQ(api.get(stream + bound).status, 401) << stream;
    }
    EXPECT_EQ(api.post("/v2/stream-tickets", request, kOther).status, 404);
    EXPECT_EQ(api.post("/v2/stream-tickets", R"({"execution_id":"x"})", kAcme).status, 404);
    EXPECT_EQ(api.post("/v2/stream-tickets", R"({"execution_id":1})", kAcme).status, 400);
    EXPECT_EQ(api.post("/v2/stream-tickets", "{", kAcme).status, 400);
    EXPECT_EQ(api.post("/v2/stream-tickets", "", {}).status, 401);
}

TEST(StreamTickets, AreGoodForStreamsAloneAndForAMinute) {
    TestApi api(with_keys());
    api.open_worker();
    const std::string id = submit(api, kAcme);
    const std::string mine = "?ticket=" + ticket(api, kAcme);
    for (const std::string& path :
         {"/v2/workflows/execution/" + id,
          std::string("/v2/workflows/executions"),
          "/v2/workflows/execution/" + id + "/explain",
          std::string("/api/v1/workers")}) {
        EXPECT_EQ(api.get(path + mine).status, 401) << path;
    }
    EXPECT_EQ(api.send("POST", "/v2/stream-tickets" + mine).status, 401);
    api.clock.advance(std::chrono::seconds(61));
    EXPECT_EQ(api.get(streams_of(id).front() + mine).status, 401);
}

TEST(StreamTickets, TheKeyItselfIsTakenOnStreamsWhereTheRulesSaySo) {
    for (const bool allowed : {false, true}) {
        Arrangement setup = with_keys();
        setup.rules.key_in_query = allowed;
        TestApi api(std::move(setup));
        api.open_worker();
        const std::string id = submit(api, kAcme);
        for (const std::string& stream : streams_of(id)) {
            EXPECT_EQ(api.get(stream + "?token=sesame").status, allowed ? 200 : 401) << stream;
            EXPECT_EQ(api.get(stream + "?token=wrong").status, 401) << stream;
        }
        EXPECT_EQ(api.get("/v2/workflows/executions?token=sesame").status, 401);
    }
}

}  // namespace
}  // namespace comfyd::api
