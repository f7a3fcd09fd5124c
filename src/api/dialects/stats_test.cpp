// Metrics of one execution and sums over many, over real sockets.
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::TestApi;

constexpr std::uint64_t kGib = 1ULL << 30;

jobs::Usage gpu_usage() {
    jobs::Usage usage;
    usage.gpu = Millis(10'000);
    usage.model_load = Millis(2'500);
    usage.inference = Millis(7'500);
    usage.images = 4;
    usage.models = 2;
    usage.model_loads = 1;
    usage.vram_peak_bytes = 12 * kGib;
    usage.ram_peak_bytes = 3 * kGib / 2;
    usage.gpu_percent = 91.5;
    usage.gpu_second_usd = 0.0005;
    usage.cost_usd = jobs::cost_of(usage);
    return usage;
}

json::object parse(const std::string& body) {
    auto parsed = json::parse_object(body);
    EXPECT_TRUE(parsed) << body;
    return parsed.value_or(json::object());
}

net::Headers bearer(const std::string& key) {
    net::Headers headers;
    headers.set("Authorization", "Bearer " + key);
    return headers;
}

// A job that a scripted worker runs to its end.
std::string run_job(TestApi& api, net::Headers headers = {}) {
    const auto submitted = api.post(
        "/v2/workflows/execute",
        R"({"workflow": {"1": {"class_type": "EmptyImage", "inputs": {}}}})",
        headers
    );
    EXPECT_EQ(submitted.status, 202) << submitted.body;
    const std::string id(parse(submitted.body).at("execution_id").as_string());
    json::object shown{{"status", "queued"}};
    for (int round = 0; round < 100'000 && shown.at("status") != "completed"; ++round) {
        shown = parse(api.get("/v2/workflows/execution/" + id, headers).body);
    }
    EXPECT_EQ(shown.at("status"), "completed");
    return id;
}

TEST(Stats, MetricsOfAnExecutionHaveEverySeedField) {
    TestApi api;
    api.fleet.worker->usage = gpu_usage();
    api.fleet.worker->output.type = "image";
    api.open_worker();
    const std::string id = run_job(api);
    auto metrics = parse(api.get("/v2/workflows/execution/" + id + "/metrics").body);
    const auto timing = metrics.at("timing").as_object();
    EXPECT_TRUE(timing.at("queue_time").is_double());
    EXPECT_TRUE(timing.at("total_time").is_double());
    EXPECT_EQ(timing.at("model_load_time"), 2.5);
    EXPECT_EQ(timing.at("inference_time"), 7.5);
    EXPECT_EQ(
        metrics.at("resources"),
        *json::parse(R"({"gpu_memory_peak_gb":12.0,"gpu_utilization_percent":91.5,)"
                     R"("cpu_usage_percent":null,"system_memory_gb":1.5})")
    );
    EXPECT_EQ(
        metrics.at("workflow"), *json::parse(R"({"node_count":1,"image_count":1,"model_count":2})")
    );
    EXPECT_EQ(
        metrics.at("quality"),
        *json::parse(R"({"success":true,"error_category":null,"retry_count":0})")
    );
    EXPECT_EQ(metrics.at("cost"), *json::parse(R"({"estimate_usd":0.00625})"));
    EXPECT_EQ(metrics.size(), 6U);
    EXPECT_EQ(parse(api.get("/v1/workflows/execution/" + id + "/metrics").body), metrics);
}

TEST(Stats, TotalsAndGroups) {
    TestApi api;
    api.fleet.worker->usage = gpu_usage();
    api.open_worker();
    run_job(api);
    run_job(api);
    const auto answer = api.get("/v2/stats?range=24h&group_by=worker");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.get("X-API-Version"), "2.0");
    const auto stats = parse(answer.body);
    EXPECT_EQ(stats.at("range"), "24h");
    EXPECT_EQ(stats.at("group_by"), "worker");
    EXPECT_TRUE(stats.at("tenant").is_null());
    EXPECT_EQ(stats.at("groups_cut"), false);
    const auto from = parse_rfc3339(stats.at("from").as_string());
    const auto to = parse_rfc3339(stats.at("to").as_string());
    ASSERT_TRUE(from && to);
    EXPECT_EQ(*from, jobs::hour_of(*to - std::chrono::hours(24)));
    auto totals = stats.at("totals").as_object();
    EXPECT_TRUE(totals.at("queue_time").at("p50").is_double());
    EXPECT_TRUE(totals.at("run_time").at("p95").is_double());
    totals.erase("queue_time");
    totals.erase("run_time");
    EXPECT_EQ(
        json::value(totals),
        *json::parse(
            R"({"jobs":{"total":2,"completed":2,"failed":0,"cancelled":0,"expired":0},"retries":0,)"
            R"("gpu_seconds":20.0,"inference_seconds":15.0,"model_load_seconds":5.0,"model_loads":2,)"
            R"("images":8,"images_per_gpu_second":0.4,"cost_usd":0.0125,"cost_per_image_usd":0.001563})"
        )
    );
    const auto& groups = stats.at("groups").as_array();
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].at("key"), "scripted");
    EXPECT_EQ(groups[0].at("jobs"), totals.at("jobs"));
}

TEST(Stats, NothingIsNothing) {
    TestApi api;
    const auto stats = parse(api.get("/v2/stats").body);
    EXPECT_EQ(stats.at("range"), "24h");
    EXPECT_TRUE(stats.at("group_by").is_null());
    EXPECT_TRUE(stats.at("groups").as_array().empty());
    EXPECT_TRUE(stats.at("totals").at("queue_time").at("p50").is_null());
    EXPECT_TRUE(stats.at("totals").at("images_per_gpu_second").is_null());
    EXPECT_EQ(stats.at("totals").at("cost_usd"), 0.0);
}

TEST(Stats, ATenantSeesItsOwnAndAnOperatorAll) {
    Arrangement setup;
    setup.keys = {
        {"one", "red", auth::hash_key("first")},
        {"two", "blue", auth::hash_key("second")},
        {"boss", "staff", auth::hash_key("third"), true},
    };
    TestApi api(std::move(setup));
    api.open_worker();
    run_job(api, bearer("first"));
    run_job(api, bearer("second"));
    const auto jobs_of = [&api](const char* key, const std::string& query) {
        const auto stats = parse(api.get("/v2/stats?group_by=tenant" + query, bearer(key)).body);
        return std::pair(
            stats.at("groups").as_array().size(),
            stats.at("totals").at("jobs").at("total").to_number<int>()
        );
    };
    EXPECT_EQ(jobs_of("first", ""), std::pair(std::size_t{1}, 1));
    EXPECT_EQ(jobs_of("first", "&tenant=red"), std::pair(std::size_t{1}, 1));
    EXPECT_EQ(jobs_of("third", ""), std::pair(std::size_t{2}, 2));
    EXPECT_EQ(jobs_of("third", "&tenant=blue"), std::pair(std::size_t{1}, 1));
    const auto refused = api.get("/v2/stats?tenant=blue", bearer("first"));
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(parse(refused.body).at("error").at("code"), "forbidden");
    EXPECT_EQ(api.get("/v2/stats").status, 401);
}

TEST(Stats, OddRequestsAreRefused) {
    TestApi api;
    for (const char* query : {"range=2h", "range=24H", "group_by=day", "group_by=none"}) {
        const auto answer = api.get("/v2/stats?" + std::string(query));
        EXPECT_EQ(answer.status, 400) << query;
        EXPECT_EQ(parse(answer.body).at("error").at("code"), "invalid_argument") << query;
    }
}

}  // namespace
}  // namespace comfyd::api
