// What requests may say about where outputs are kept and for how long, and what operators see of
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::header;
using test::parse;
using test::TestApi;
using testing::HasSubstr;

Arrangement with_stores() {
    Arrangement arrangement;
    arrangement.admission.keeping.stores["main"] = {"s3", "pictures"};
    arrangement.admission.keeping.stores["own"] = {"s3", "acme", {"acme"}};
    return arrangement;
}

std::string request(const std::string& more) {
    return R"({"workflow": {"1": {"class_type": "SaveImage", "inputs": {}}}, )" + more + "}";
}

json::object kept_of(TestApi& api, const std::string& path, const std::string& more) {
    const auto response = api.post(path, request(more));
    EXPECT_EQ(response.status / 100, 2) << response.body;
    const json::object body = parse(response.body);
    const json::value* id = json::find(body, path == "/api/v2/jobs" ? "id" : "execution_id");
    const auto found =
        assets::test::wait_for(api.ledger.find(*JobId::parse(std::string(id->as_string()))));
    EXPECT_TRUE(found && *found);
    const json::value* kept = json::find((*found)->dialect_data, "keep");
    return kept == nullptr ? json::object() : kept->as_object();
}

TEST(KeepingFields, AreTakenByEveryApiThatHasThem) {
    TestApi api(with_stores());
    const std::string storage =
        R"("output_config": {"storage": {"provider": "s3", "bucket": "pictures", "path": "a/b"}})";
    for (const char* path : {"/api/v2/jobs", "/comfyui/execute"}) {
        EXPECT_EQ(kept_of(api, path, storage).at("store"), "main/a/b") << path;
        EXPECT_EQ(kept_of(api, path, R"("retention": "glacier")").at("retention"), "glacier");
        EXPECT_EQ(
            kept_of(api, path, R"("output_config": {"retention": "immediate"})").at("life_ms"),
            24 * 60 * 60 * 1000
        );
        EXPECT_TRUE(kept_of(api, path, R"("metadata": {})").empty()) << path;
        for (const char* wrong :
             {R"("retention": "forever")",
              R"("retention": 7)",
              R"("output_config": {"storage": {"provider": "own"}})",
              R"("output_config": {"storage": {"provider": "main", "path": "../x"}})",
              R"("output_config": {"storage": 7})",
              R"("output_config": 7)"}) {
            EXPECT_EQ(api.post(path, request(wrong)).status / 100, 4) << path << " " << wrong;
        }
    }
}

TEST(KeepingFields, WithoutStoresAWishIsAnsweredWithAWarning) {
    TestApi api;
    const auto response = api.post(
        "/comfyui/execute", request(R"("output_config": {"storage": {"provider": "s3"}})")
    );
    EXPECT_EQ(response.status / 100, 2);
    EXPECT_THAT(response.body, HasSubstr("output_config.storage"));
    TestApi stores(with_stores());
    const auto done = stores.post(
        "/comfyui/execute", request(R"("output_config": {"storage": {"provider": "s3"}})")
    );
    EXPECT_THAT(done.body, testing::Not(HasSubstr("output_config.storage")));
}

TEST(KeepingFields, OperatorsSeeWhatWillGo) {
    TestApi api;
    using assets::test::wait_for;
    for (int hours = 1; hours <= 3; ++hours) {
        assets::Asset asset;
        asset.id = AssetId::make(api.clock.now());
        asset.tenant = "acme";
        asset.hash = "blake3:" + std::to_string(hours);
        asset.created_at = api.clock.now();
        asset.expires_at = api.clock.now() + std::chrono::hours(hours);
        asset.moves_at = api.clock.now() + std::chrono::hours(hours);
        asset.retention = assets::RetentionClass::archive;
        ASSERT_TRUE(wait_for(api.records.add(asset)));
    }
    const auto listed = [&api](const std::string& query) {
        return parse(api.get("/admin/v1/retention" + query).body).at("assets").as_array();
    };
    EXPECT_TRUE(listed("").empty());
    const std::string by = "?by=" + to_rfc3339(api.clock.now() + std::chrono::hours(2));
    const auto due = listed(by);
    ASSERT_EQ(due.size(), 2U);
    EXPECT_EQ(due[0].at("action"), "remove");
    EXPECT_EQ(due[0].at("tenant"), "acme");
    EXPECT_EQ(due[0].at("retention"), "archive");
    EXPECT_EQ(listed(by + "&action=move").at(0).at("action"), "move");
    EXPECT_EQ(api.get("/admin/v1/retention?by=tomorrow").status, 400);
    EXPECT_EQ(api.get("/admin/v1/retention?cursor=x").status, 400);
    const auto stores = parse(api.get("/admin/v1/stores").body);
    EXPECT_EQ(stores.at("stores").as_array().size(), 1U);
    EXPECT_EQ(stores.at("uploads_waiting"), 3);
}

}  // namespace
}  // namespace comfyd::api
