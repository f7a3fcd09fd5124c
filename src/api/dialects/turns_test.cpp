// What can be asked for about the turn of a job, in every dialect, and how it is explained.
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::header;
using test::parse;
using test::TestApi;

constexpr std::string_view kGraph =
    R"({"1": {"class_type": "EmptyImage", "inputs": {"width": 8}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}})";
constexpr std::string_view kTurn = R"("class": "batch", "fairness_key": "user-7")";

std::string with_turn(std::string_view before, std::string_view turn = kTurn) {
    return "{" + std::string(before) + (turn.empty() ? "" : ", ") + std::string(turn) + "}";
}

std::string workflow_body(std::string_view turn = kTurn) {
    return with_turn("\"workflow\": " + std::string(kGraph), turn);
}

std::string id_in(const net::ClientResponse& response) {
    const json::object body = parse(response.body);
    for (const char* name : {"execution_id", "id", "task_id", "job_id"}) {
        if (const json::value* id = json::find(body, name)) {
            return std::string(id->as_string());
        }
    }
    ADD_FAILURE() << response.status << " " << response.body;
    return {};
}

json::object explain(TestApi& api, const std::string& id) {
    return parse(api.get("/v2/workflows/execution/" + id + "/explain").body);
}

test::Arrangement with_tenant(jobs::TenantOptions options) {
    test::Arrangement setup;
    setup.jobs.tenants["local"] = options;
    return setup;
}

TEST(Turns, EveryDialectTakesAClassAndAFairnessKey) {
    TestApi api;
    const std::string graph(kGraph);
    const std::vector<std::pair<std::string, std::string>> requests{
        {"/v2/workflows/execute", workflow_body()},
        {"/v1/workflows/execute",
         with_turn("\"workflow\": " + graph, "\"execution_config\": {" + std::string(kTurn) + "}")},
        {"/api/v2/jobs", workflow_body()},
        {"/comfyui/execute", workflow_body()},
        {"/api/v1/tasks", with_turn("\"workflow_id\": \"w\", \"payload\": " + graph)},
        {"/runpod/v2/sdxl/run",
         with_turn(
             "\"input\": {\"workflow\": " + graph + "}", "\"policy\": {" + std::string(kTurn) + "}"
         )},
    };
    for (const auto& [path, body] : requests) {
        SCOPED_TRACE(path);
        const std::string id = id_in(api.post(path, body));
        const jobs::Spec spec = api.ledger.spec(JobId::parse(id).value());
        EXPECT_TRUE(spec.batch);
        EXPECT_EQ(spec.fairness_key, "user-7");
        const json::object told = explain(api, id);
        EXPECT_EQ(told.at("class"), "batch");
        EXPECT_EQ(told.at("fairness_key"), "user-7");
    }
}

TEST(Turns, HeadersCountWhereTheBodySaysNothing) {
    TestApi api;
    auto headers = header("X-Comfyd-Fairness-Key", "from header");
    headers.set("X-Comfyd-Class", "batch");
    const auto spec_of = [&](std::string_view turn) {
        const auto response = api.post("/v2/workflows/execute", workflow_body(turn), headers);
        return api.ledger.spec(JobId::parse(id_in(response)).value());
    };
    EXPECT_EQ(spec_of("").fairness_key, "from header");
    EXPECT_TRUE(spec_of("").batch);
    EXPECT_EQ(spec_of(R"("fairness_key": "own")").fairness_key, "own");
    EXPECT_EQ(spec_of(R"("fairness_key": "")").fairness_key, "");
}

TEST(Turns, WhatCannotBeIsRefused) {
    TestApi api;
    for (const std::string& turn :
         {std::string(R"("class": "high")"),
          std::string(R"("class": 3)"),
          std::string(R"("fairness_key": 7)"),
          std::string(R"("fairness_key": "a\nb")"),
          "\"fairness_key\": \"" + std::string(jobs::kFairnessKeyBytesMax + 1, 'x') + "\""}) {
        const auto response = api.post("/v2/workflows/execute", workflow_body(turn));
        EXPECT_EQ(response.status, 400) << turn;
        EXPECT_EQ(test::error_code(response), "invalid_argument") << turn;
    }
}

TEST(Turns, TheTierRaisesThePriorityAndTheExplanationSaysSo) {
    TestApi api(with_tenant({{}, scheduler::Tier::enterprise, 0}));
    const std::string id = id_in(api.post("/v2/workflows/execute", workflow_body("")));
    const json::object told = explain(api, id);
    EXPECT_EQ(told.at("priority"), 5) << "as asked for";
    EXPECT_EQ(told.at("effective_priority"), 10);
    EXPECT_EQ(told.at("class"), "high");
    EXPECT_EQ(told.at("priority_score").to_number<double>(), 10);
    const json::array& factors = told.at("priority_factors").as_array();
    ASSERT_EQ(factors.size(), 5U);
    EXPECT_EQ(factors[0].at("name"), "tier");
    EXPECT_EQ(factors[0].at("multiplier").to_number<double>(), 2);
    EXPECT_EQ(factors[0].at("reason"), "the tier is enterprise");
    EXPECT_EQ(factors[1].at("multiplier").to_number<double>(), 1);
    const auto job = parse(api.get("/v2/workflows/execution/" + id).body);
    EXPECT_EQ(job.at("priority"), 5);
}

TEST(Turns, NothingKnownOrNotClassifiedKeepsThePriority) {
    TestApi plain;
    auto setup = with_tenant({{}, scheduler::Tier::enterprise, 0});
    setup.jobs.classify = false;
    TestApi off(setup);
    for (TestApi* api : {&plain, &off}) {
        for (const int priority : {1, 5, 7, 10}) {
            const std::string asked = "\"priority\": " + std::to_string(priority);
            const std::string id = id_in(api->post("/v2/workflows/execute", workflow_body(asked)));
            const json::object told = explain(*api, id);
            EXPECT_EQ(told.at("effective_priority"), priority);
            EXPECT_EQ(told.contains("priority_factors"), api == &plain);
        }
    }
}

TEST(Turns, AUsedUpQuotaLowersThePriority) {
    TestApi api(with_tenant({{}, scheduler::Tier::basic, 10}));
    jobs::Usage usage;
    usage.gpu = Millis(9'500);
    api.on_core([&api, usage] { api.fleet.worker->usage = usage; });
    api.open_worker();
    const std::string first = id_in(api.post("/v2/workflows/execute", workflow_body("")));
    api.wait_for_status("/v2/workflows/execution/" + first, "completed");
    api.on_core([&api] {
        api.fleet.worker->open = false;
        api.fleet.changed();
    });
    const auto effective = [&api] {
        const std::string id =
            id_in(api.post("/v2/workflows/execute", workflow_body("\"priority\": 8")));
        return explain(api, id);
    };
    const json::object told = effective();
    EXPECT_EQ(told.at("effective_priority"), 7);
    EXPECT_EQ(told.at("class"), "medium");
    EXPECT_EQ(
        told.at("priority_factors").as_array()[4].at("reason"),
        "less than a tenth of the quota is left"
    );
    api.clock.advance(std::chrono::hours(25));
    EXPECT_EQ(effective().at("effective_priority"), 8) << "a day later";
}

TEST(Turns, FairnessKeysOfATenantTakeTurns) {
    TestApi api;
    std::vector<std::string> ids;
    for (const char* key : {"a", "a", "a", "b"}) {
        const std::string turn = "\"fairness_key\": \"" + std::string(key) + "\"";
        ids.push_back(id_in(api.post("/v2/workflows/execute", workflow_body(turn))));
    }
    EXPECT_EQ(explain(api, ids[0]).at("queue_position"), 1U);
    EXPECT_EQ(explain(api, ids[3]).at("queue_position"), 2U) << "before the second of the other";
    EXPECT_EQ(explain(api, ids[2]).at("queue_position"), 4U);
}

}  // namespace
}  // namespace comfyd::api
