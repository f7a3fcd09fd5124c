// Keys and tenants of several nodes: what one makes or revokes holds for all.
#include <gtest/gtest.h>

#include "cluster/cluster.hpp"

namespace comfyd::support {
namespace {

constexpr const char* kBoss = "boss-0123456789abcdef";

class IdentitiesOfNodes : public testing::TestWithParam<bool> {
protected:
    static ClusterOptions options(bool redis) {
        ClusterOptions made;
        made.redis = redis;
        made.workers = 1;
        const std::map<std::string, std::string> environment{
            {"COMFYD_AUTH_KEYS", std::string("boss=") + kBoss},
            {"COMFYD_AUTH_OPERATORS", "boss"},
        };
        made.environments = {environment, environment};
        return made;
    }
    std::unique_ptr<Http> client(std::size_t node, const std::string& key) {
        auto made = std::make_unique<Http>(cluster_.node(node).url());
        made->set_header("Authorization", "Bearer " + key);
        return made;
    }

    Cluster cluster_{options(GetParam())};
};
INSTANTIATE_TEST_SUITE_P(, IdentitiesOfNodes, testing::Bool(), [](const auto& info) {
    return info.param ? "WithRedis" : "WithoutRedis";
});

TEST_P(IdentitiesOfNodes, HoldEverywhereWithinSeconds) {
    const auto here = client(0, kBoss);
    const auto there = client(1, kBoss);
    const Reply made = here->post_json("/admin/v1/keys", {{"name", "app"}, {"tenant", "acme"}});
    ASSERT_EQ(made.status, 201) << made.body;
    const auto app = client(1, std::string(made.json_at("/key").as_string()));
    EXPECT_TRUE(wait_until([&] { return app->get("/api/v2/jobs").status == 200; }));
    const std::string id(made.json_at("/id").as_string());
    EXPECT_EQ(there->get("/admin/v1/keys/" + id).json_at("/tenant"), "acme");

    EXPECT_EQ(
        there->post_json(
                 "/admin/v1/tenants", {{"name", "acme"}, {"denied_nodes", {"KSampler"}}}
        ).status,
        201
    );
    const auto at_first = client(0, std::string(made.json_at("/key").as_string()));
    EXPECT_EQ(here->get("/admin/v1/tenants/acme").status, 200);
    EXPECT_TRUE(wait_until([&] {
        const Reply denied =
            at_first->post_json("/v2/workflows/execute", {{"workflow", text_to_image("no")}});
        return denied.status == 400 && denied.body.find("KSampler") != std::string::npos;
    }));

    EXPECT_EQ(here->post("/admin/v1/keys/" + id + "/revoke", "{}").status, 200);
    EXPECT_EQ(at_first->get("/api/v2/jobs").status, 401);
    EXPECT_TRUE(wait_until([&] { return app->get("/api/v2/jobs").status == 401; }));
    // Who was slower decides anew, upon what the other left.
    EXPECT_EQ(there->post("/admin/v1/keys/" + id + "/rotate", "{}").status, 409);
}

TEST_P(IdentitiesOfNodes, ASessionOfOneIsASessionOfAll) {
    Http here(cluster_.node(0).url());
    Http there(cluster_.node(1).url());
    net::Headers page;
    page.set("Sec-Fetch-Site", "same-origin");
    const Reply opened = here.post_json("/login", {{"key", kBoss}}, page);
    ASSERT_EQ(opened.status, 200) << opened.body;
    const std::string set(opened.headers.get("Set-Cookie"));
    page.set("Cookie", set.substr(0, set.find(';')));
    EXPECT_EQ(there.get("/api/v2/jobs", page).status, 200);
    page.set("X-CSRF-Token", std::string(opened.json_at("/csrf_token").as_string()));
    EXPECT_EQ(there.post("/logout", "", page).status, 200);
    EXPECT_EQ(here.get("/api/v2/jobs", page).status, 401) << "at once: each request asks";
}

}  // namespace
}  // namespace comfyd::support
