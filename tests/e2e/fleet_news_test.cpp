// What operators' endpoints are told of machines that comfyd starts and stops, by the real binary.
#include <gmock/gmock.h>

#include "base/crypto.hpp"
#include "local_comfyui_support.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;

constexpr const char* kEndpoints = "/v2/webhooks/endpoints";
constexpr const char* kAdminKey = "an-operators-key-of-the-tests-0123456789";
constexpr const char* kPlainKey = "somebody-elses-key-of-the-tests-01234567";

bool is_signed(const ReceivedRequest& request, const std::string& secret) {
    const auto key = from_base64(std::string_view(secret).substr(6));
    const std::string text = std::string(request.headers.get("webhook-id")) + "." +
                             std::string(request.headers.get("webhook-timestamp")) + "." +
                             request.body;
    const Digest digest = hmac_sha256(key.value_or(""), text);
    return request.headers.get("webhook-signature") ==
           "v1," + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

class FleetNews : public LocalComfyUi {
protected:
    json::object create(json::array events) {
        const Reply made = comfyd_->http().post_json(
            kEndpoints, {{"url", receiver_.url()}, {"events", std::move(events)}}
        );
        EXPECT_EQ(made.status, 201) << made.body;
        return made.json().as_object();
    }
    // Names of what was told, each message once.
    std::vector<std::string> told() const {
        std::vector<std::string> names;
        std::set<std::string> ids;
        for (const ReceivedRequest& request : receiver_.requests()) {
            if (ids.emplace(request.headers.get("webhook-id")).second) {
                names.emplace_back(request.json().at("event").as_string());
            }
        }
        return names;
    }
    bool has_told(const std::string& name) const {
        return wait_until([&] { return std::ranges::count(told(), name) > 0; }, kLong);
    }

    WebhookReceiver receiver_;
};

TEST_F(FleetNews, AMachinesLifeIsToldSignedAndInOrder) {
    start(1);
    const auto endpoint = create({"fleet.*"});
    const std::string secret(endpoint.at("secret").as_string());
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    EXPECT_TRUE(has_told("fleet.instance.ready"));
    ASSERT_EQ(resize(0).status, 200);
    EXPECT_TRUE(has_told("fleet.instance.removed"));
    EXPECT_THAT(told(), IsSupersetOf({"fleet.instance.warming", "fleet.pool.resized"}));
    std::int64_t number = 0;
    for (const ReceivedRequest& request : receiver_.requests()) {
        EXPECT_TRUE(is_signed(request, secret)) << request.body;
        const json::value body = request.json();
        EXPECT_EQ(body.at("fleet"), "main");
        const json::value& data = body.at("data");
        EXPECT_EQ(data.at("pool"), "default");
        EXPECT_GT(data.at("number").as_int64(), number) << "each once, and in order";
        number = data.at("number").as_int64();
    }
    // As the log of events says.
    const json::value logged =
        comfyd_->http().get("/admin/v1/fleet/events?limit=1").json_at("/events/0");
    const json::value last = receiver_.requests().back().json();
    EXPECT_EQ(last.at("data").at("what"), logged.at("what"));
    EXPECT_EQ(last.at("timestamp"), logged.at("at"));
}

TEST_F(FleetNews, WhatWasNotTakenIsToldAfterAKillToo) {
    start(1);
    receiver_.script(std::vector<ScriptedAnswer>(3, {.status = 503}));
    create({"fleet.instance.ready", "fleet.instance.removed"});
    ASSERT_TRUE(wait_until([&] { return ready() == 1; }, kLong)) << comfyd_->log();
    ASSERT_TRUE(receiver_.wait_for(1));
    comfyd_->restart();
    EXPECT_TRUE(has_told("fleet.instance.ready"));
    ASSERT_TRUE(receiver_.wait_for(4, kLong)) << "until it was taken";
    ASSERT_EQ(resize(0).status, 200);
    EXPECT_TRUE(has_told("fleet.instance.removed"));
    EXPECT_EQ(told().size(), 2U) << "and nothing else";
}

TEST_F(FleetNews, OnlyWhoAdministersTheFleetHearsOfIt) {
    const std::string file = folder_.write(
        "comfyd.yaml",
        "auth:\n  keys:\n    - {name: boss, tenant: acme, sha256: " + to_hex(sha256(kAdminKey)) +
            "}\n    - {name: clerk, tenant: acme, sha256: " + to_hex(sha256(kPlainKey)) +
            "}\n  operators: [boss]\n"
    );
    start(1, {"--config", file});
    Http& boss = comfyd_->http();
    boss.set_header("Authorization", std::string("Bearer ") + kAdminKey);
    Http clerk(comfyd_->url());
    clerk.set_header("Authorization", std::string("Bearer ") + kPlainKey);
    const json::object wanted{{"url", receiver_.url()}, {"events", {"fleet.instance.ready"}}};
    const Reply refused = clerk.post_json(kEndpoints, wanted);
    EXPECT_EQ(refused.status, 403);
    EXPECT_THAT(refused.body, HasSubstr("admin"));
    const auto made = create({"fleet.instance.ready"});
    const std::string path = kEndpoints + ("/" + std::string(made.at("id").as_string()));
    const auto send = [&](const char* method, const std::string& of, const char* body) {
        return clerk.send({.method = method, .url = path + of, .body = body}).status;
    };
    EXPECT_EQ(send("PATCH", "", R"({"url": "http://192.0.2.1/"})"), 403) << "it is not turned away";
    EXPECT_EQ(send("PATCH", "", R"({"events": null})"), 403);
    EXPECT_EQ(send("POST", "/rotate", "{}"), 403);
    EXPECT_EQ(send("DELETE", "", ""), 403);
    EXPECT_EQ(send("GET", "", ""), 200);
    const Reply own = clerk.post_json(kEndpoints, {{"url", receiver_.url()}});
    ASSERT_EQ(own.status, 201);
    const std::string own_path = kEndpoints + ("/" + std::string(own.json_at("/id").as_string()));
    const Reply widened =
        clerk.send({.method = "PATCH", .url = own_path, .body = R"({"events": ["fleet.*"]})"});
    EXPECT_EQ(widened.status, 403);
    // Nor by the webhook of a job.
    const Reply job = clerk.post_json(
        "/api/v2/jobs",
        {{"workflow", small_picture()},
         {"webhook_config", {{"url", receiver_.url()}, {"events", {"fleet.*"}}}}}
    );
    EXPECT_EQ(job.status, 422) << job.body;
    EXPECT_TRUE(has_told("fleet.instance.ready"));
    EXPECT_EQ(told().size(), 1U);
}

}  // namespace
}  // namespace comfyd::support
