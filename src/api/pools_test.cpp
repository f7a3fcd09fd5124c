// Pools: which workers a request may use, and what is said when none of them can run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/submission.hpp"
#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

std::shared_ptr<const workflow::NodeClasses> classes(const std::string& models, bool has_extra) {
    const std::string extra = has_extra
                                  ? R"(, "Upscale": {"input": {"required": {"samples": ["LATENT"]}},
                                     "output": ["LATENT"]})"
                                  : "";
    return *workflow::NodeClasses::from_object_info(*json::parse(
        R"({"Load": {"input": {"required": {"ckpt_name": [)" + models + R"(]}},
                                  "output": ["LATENT"]},
            "Save": {"input": {"required": {"samples": ["LATENT"]}}, "output": [],
                     "output_node": true})" +
        extra + "}"
    ));
}

std::string workflow(const std::string& model, bool upscales = false) {
    return R"({"1": {"class_type": "Load", "inputs": {"ckpt_name": ")" + model + R"("}},)" +
           (upscales ? R"("2": {"class_type": "Upscale", "inputs": {"samples": ["1", 0]}},)" : "") +
           R"("3": {"class_type": "Save", "inputs": {"samples": [")" + (upscales ? "2" : "1") +
           R"(", 0]}}})";
}

std::string body(const std::string& graph, const std::string& members = "") {
    return R"({"workflow": )" + graph + (members.empty() ? "" : "," + members) + "}";
}

Arrangement two_pools() {
    Arrangement setup;
    setup.catalogue =
        std::make_shared<const workflow::Catalogue>(std::vector<workflow::Catalogue::Entry>{
            {"small", classes(R"(["a", "b"])", false), "default"},
            {"large", classes(R"(["a", "xl"])", true), "gold"},
        });
    setup.options.pools = {"default", "gold", "spare"};
    setup.keys = {
        {"red", "red", auth::hash_key("key-of-red")},
        {"blue", "blue", auth::hash_key("key-of-blue")},
    };
    admission::TenantRules blue;
    blue.pool = "default";
    setup.admission.tenants->set({{"blue", blue}});
    return setup;
}

class Pools : public testing::Test {
protected:
    net::ClientResponse post(
        const std::string& path, const std::string& text, const char* key = "key-of-red"
    ) {
        return api.post(path, text, header("Authorization", "Bearer " + std::string(key)));
    }
    Requirement requirement_of(const net::ClientResponse& response, const char* id) {
        EXPECT_LT(response.status, 300) << response.body;
        const json::object answer = parse(response.body);
        return answer.contains(id)
                   ? api.ledger.spec(*JobId::parse(std::string_view(answer.at(id).as_string())))
                         .requirement
                   : Requirement();
    }

    TestApi api{two_pools()};
};

TEST_F(Pools, EveryDialectTakesOne) {
    const std::string pool = R"("pool": "gold")";
    const std::string flow = workflow("a");
    const auto expect_gold = [this](const net::ClientResponse& response, const char* id) {
        const Requirement requirement = requirement_of(response, id);
        EXPECT_EQ(requirement.pool(), "gold") << response.body;
        EXPECT_EQ(requirement.in_pool("").encoded(), "Load\nSave");
    };
    expect_gold(post("/v2/workflows/execute", body(flow, pool)), "execution_id");
    expect_gold(
        post("/v1/workflows/execute", body(flow, R"("execution_config": {)" + pool + "}")),
        "execution_id"
    );
    expect_gold(post("/comfyui/execute", body(flow, pool)), "execution_id");
    expect_gold(post("/api/v1/tasks", R"({"payload": )" + flow + "," + pool + "}"), "id");
    expect_gold(post("/api/v2/jobs", body(flow, pool)), "id");
    expect_gold(
        post(
            "/runpod/v2/e/run",
            R"({"input": {"workflow": )" + flow + R"(}, "policy": {)" + pool + "}}"
        ),
        "id"
    );
    ASSERT_EQ(
        api.send(
               "PUT",
               "/v2/workflows/stored",
               body(flow),
               header("Authorization", "Bearer key-of-red")
        )
            .status,
        201
    );
    expect_gold(post("/v2/workflows/stored/run", "{" + pool + "}"), "execution_id");
    net::Headers headers = header("Authorization", "Bearer key-of-red");
    headers.set("X-Comfyd-Pool", "gold");
    expect_gold(api.post("/v2/workflows/execute", body(flow), headers), "execution_id");
}

TEST_F(Pools, NoneAskedMeansAnyUnlessTheTenantHasOne) {
    const auto any = post("/v2/workflows/execute", body(workflow("xl")));
    EXPECT_EQ(requirement_of(any, "execution_id").pool(), "");
    const auto own = post("/v2/workflows/execute", body(workflow("a")), "key-of-blue");
    EXPECT_EQ(requirement_of(own, "execution_id").pool(), "default");
    const auto other =
        post("/v2/workflows/execute", body(workflow("a"), R"("pool": "gold")"), "key-of-blue");
    EXPECT_EQ(requirement_of(other, "execution_id").pool(), "gold");
}

TEST_F(Pools, AnUnknownOneIsRefusedWithThoseThatThereAre) {
    const auto refused = post("/v2/workflows/execute", body(workflow("a"), R"("pool": "silver")"));
    EXPECT_EQ(refused.status, 400) << refused.body;
    const json::object error = parse(refused.body).at("error").as_object();
    EXPECT_THAT(
        std::string(error.at("message").as_string()),
        HasSubstr("no pool 'silver'; the pools are default, gold, spare")
    );
    EXPECT_EQ(error.at("details").at("pools").as_array().size(), 3U);
    EXPECT_EQ(post("/v2/workflows/execute", body(workflow("a"), R"("pool": 7)")).status, 400);
}

TEST_F(Pools, WhenNobodyCanTheAnswerNamesPoolsThatCould) {
    const auto refused =
        post("/v2/workflows/execute", body(workflow("xl", true), R"("pool": "default")"));
    EXPECT_EQ(refused.status, 400) << refused.body;
    const json::object error = parse(refused.body).at("error").as_object();
    EXPECT_EQ(error.at("code"), "no_capable_worker");
    const json::object& details = error.at("details").as_object();
    EXPECT_EQ(details.at("other_pools"), json::value(json::array{"gold"}));
    EXPECT_EQ(details.at("nearest_worker"), "small");
    EXPECT_EQ(details.at("missing_nodes"), json::value(json::array{"Upscale"}));
    EXPECT_EQ(details.at("missing_files").at(0).at("value"), "xl");
    EXPECT_THAT(
        std::string(error.at("message").as_string()),
        HasSubstr("it would start with the pool 'gold'")
    );
    const json::object checked =
        parse(post("/v2/workflows/validate", body(workflow("xl"), R"("pool": "default")")).body);
    EXPECT_EQ(checked.at("valid"), false);
    const std::string text = json::serialize(checked);
    EXPECT_THAT(text, HasSubstr("NO_CAPABLE_WORKER"));
    EXPECT_THAT(text, HasSubstr(R"("other_pools":["gold"])"));
    const auto nowhere =
        post("/v2/workflows/execute", body(workflow("b", true), R"("pool": "gold")"));
    EXPECT_THAT(nowhere.body, HasSubstr("no other pool can run it either"));
}

TEST_F(Pools, OneWithoutWorkersYetWaits) {
    const std::string text = body(workflow("xl"), R"("pool": "spare")");
    EXPECT_EQ(post("/v2/workflows/execute", text).status, 202);
    const json::object checked = parse(post("/v2/workflows/validate", text).body);
    EXPECT_EQ(checked.at("valid"), true);
    EXPECT_THAT(json::serialize(checked), HasSubstr("NO_WORKER_IN_POOL"));
    EXPECT_THAT(json::serialize(checked), HasSubstr(R"("other_pools":["gold"])"));
}

TEST_F(Pools, AnotherPoolIsAnotherRequest) {
    net::Headers headers = header("Authorization", "Bearer key-of-red");
    headers.set("Idempotency-Key", "k");
    EXPECT_EQ(api.post("/v2/workflows/execute", body(workflow("a")), headers).status, 202);
    EXPECT_EQ(
        api.post("/v2/workflows/execute", body(workflow("a"), R"("pool": "gold")"), headers).status,
        422
    );
}

TEST(PoolsOfATenant, WorkersOfOthersAreNotShown) {
    Arrangement setup = two_pools();
    admission::TenantRules blue;
    blue.pools = {"gold"};
    setup.admission.tenants->set({{"blue", blue}});
    TestApi api{std::move(setup)};
    const auto get = [&api](const char* path, const std::string& key) {
        const auto answer = api.get(path, header("Authorization", "Bearer " + key));
        EXPECT_EQ(answer.status, 200) << answer.body;
        return parse(answer.body);
    };
    EXPECT_EQ(get("/api/v1/workers", "key-of-red").at("count"), 1);
    EXPECT_EQ(get("/api/v1/workers", "key-of-blue").at("count"), 0);
    EXPECT_EQ(get("/api/v1/workers/metrics", "key-of-blue").at("total_workers"), 0);
    const auto scripted =
        api.get("/api/v1/workers/scripted", header("Authorization", "Bearer key-of-blue"));
    EXPECT_EQ(scripted.status, 404) << scripted.body;
}

}  // namespace
}  // namespace comfyd::api
