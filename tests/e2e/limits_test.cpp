// What tenants may ask, held by the real binary: rates, jobs at a time and in all, what they may
// use and store, and what strangers may try. One is limited, another is not.
#include "auth/jwt/test_support.hpp"
#include "base/crypto.hpp"
#include "native_support.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kSecret = "a secret of more than thirty-two bytes";

std::string key_of(const std::string& tenant) {
    return "a long enough key of tenant " + tenant;
}

class Limits : public testing::Test {
protected:
    static constexpr int kWorkers = 2;

    void TearDown() override {
        comfyd_.reset();
        workers_.clear();
        thread_.stop();
    }
    // `once` passes one request of a rate in twenty minutes.
    void serve(const std::string& more = {}) {
        const auto key = [](const std::string& name) {
            return "    - {name: " + name + ", sha256: " + to_hex(sha256(key_of(name))) + "}\n";
        };
        const std::string file = folder_.write(
            "comfyd.yaml",
            "auth:\n  operators: [boss]\n  keys:\n" + key("boss") + key("plain") + key("once") +
                key("later") +
                "tenants:\n  - {name: once, requests_per_minute: 0.05}\n"
                "proxies: {trusted: [127.0.0.1]}\nfleet: {poll_ms: 100}\n" +
                more
        );
        thread_.start();
        ComfydOptions options;
        options.arguments = {"--no-engine", "--config", file};
        options.environment = {{"COMFYD_JWT_SECRET", kSecret}};
        for (int i = 0; i < kWorkers; ++i) {
            DoubleOptions worker;
            worker.delay = Millis(50);  // so that a job costs something
            workers_.push_back(std::make_unique<ComfyDouble>(thread_.context(), worker));
            workers_.back()->start();
            options.arguments.insert(options.arguments.end(), {"--worker", workers_.back()->url()});
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        ASSERT_TRUE(wait_until([this] {
            const Reply workers = get("boss", "/admin/v1/workers");
            const std::string& body = workers.body;
            std::size_t idle = 0;
            for (auto at = body.find("\"idle\""); at != std::string::npos;
                 at = body.find("\"idle\"", at + 1)) {
                ++idle;
            }
            return idle == kWorkers;
        })) << get("boss", "/admin/v1/workers").body
            << comfyd_->log();
    }

    static net::Headers of(const std::string& tenant, const std::string& address = {}) {
        net::Headers headers = header("Authorization", "Bearer " + key_of(tenant));
        if (!address.empty()) {
            headers.set("X-Forwarded-For", address);
        }
        return headers;
    }
    Reply get(const std::string& tenant, const std::string& path) {
        return comfyd_->http().get(path, of(tenant));
    }
    Reply post(const std::string& tenant, const std::string& path, const json::object& body) {
        return comfyd_->http().post_json(path, body, of(tenant));
    }
    Reply submit(const std::string& tenant, const std::string& text, const char* fault = "") {
        return post(tenant, "/api/v2/jobs", {{"workflow", text_to_image(text, fault)}});
    }
    static std::string id_of(const Reply& accepted) {
        EXPECT_EQ(accepted.status, 201) << accepted.body;
        const json::value id = accepted.json_at("/id");
        return id.is_string() ? std::string(id.get_string()) : std::string();
    }
    std::string status(const std::string& tenant, const std::string& id) {
        return Comfyd::status_of(get(tenant, "/api/v2/jobs/" + id).json());
    }
    bool reaches(const std::string& tenant, const std::string& id, const std::string& wanted) {
        return wait_until([&] { return status(tenant, id) == wanted; });
    }
    void set_tenant(const std::string& name, json::object members) {
        members["name"] = name;
        const Reply made = post("boss", "/admin/v1/tenants", members);
        ASSERT_EQ(made.status, 201) << made.body;
    }
    void change_tenant(const std::string& name, const json::object& members) {
        net::ClientRequest request;
        request.method = "PATCH";
        request.url = "/admin/v1/tenants/" + name;
        request.headers = of("boss");
        request.headers.set("Content-Type", "application/json");
        request.body = json::serialize(members);
        const Reply changed = comfyd_->http().send(std::move(request));
        ASSERT_EQ(changed.status, 200) << changed.body;
    }

    TempDir folder_;
    net::IoThread thread_{"doubles"};
    std::vector<std::unique_ptr<ComfyDouble>> workers_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(Limits, EveryDialectSaysThatARateIsUsedUp) {
    ASSERT_NO_FATAL_FAILURE(serve());
    const Reply first = submit("once", "first");
    EXPECT_EQ(first.status, 201) << first.body;
    EXPECT_EQ(first.headers.get("RateLimit-Policy"), "\"minute\";q=1;w=1200");
    EXPECT_THAT(std::string(first.headers.get("RateLimit")), StartsWith("\"minute\";r=0;t="));

    const auto is_refusal = [](const Reply& reply) {
        EXPECT_EQ(reply.status, 429) << reply.body;
        const std::string wait(reply.headers.get("Retry-After"));
        EXPECT_GT(std::atoi(wait.c_str()), 600) << wait;
        EXPECT_EQ(reply.headers.get("RateLimit"), "\"minute\";r=0;t=" + wait);
    };
    const Reply v2 = submit("once", "second");
    is_refusal(v2);
    EXPECT_EQ(v2.json_at("/error/code"), "rate_limited");
    const json::object workflow = text_to_image("second");
    const Reply execution = post("once", "/v2/workflows/execute", {{"workflow", workflow}});
    is_refusal(execution);
    EXPECT_EQ(execution.json_at("/error/category"), "resource_error");
    EXPECT_EQ(execution.json_at("/error/details/reason"), "rate_limit_exceeded");
    EXPECT_EQ(execution.json_at("/error/details/allowed"), false);
    EXPECT_EQ(execution.json_at("/error/details/remaining"), 0);
    EXPECT_EQ(
        execution.json_at("/error/retry_after"), execution.json_at("/error/details/retry_after")
    );
    const Reply comfyui = post("once", "/comfyui/execute", {{"workflow", workflow}});
    is_refusal(comfyui);
    EXPECT_EQ(comfyui.json_at("/error_code"), "RATE_LIMITED");
    const Reply task = post("once", "/api/v1/tasks", {{"payload", {{"workflow", workflow}}}});
    is_refusal(task);
    EXPECT_EQ(task.json_at("/code"), "rate_limited");
    const Reply runpod = post("once", "/runpod/v2/any/run", {{"input", {{"workflow", workflow}}}});
    is_refusal(runpod);
    const Reply native = post("once", "/prompt", {{"prompt", workflow}});
    is_refusal(native);
    EXPECT_EQ(native.json_at("/error/type"), "rate_limited");

    // Reading, stopping and removing cost nothing, and others are not concerned.
    const std::string id = id_of(first);
    EXPECT_EQ(get("once", "/api/v2/jobs/" + id).status, 200);
    EXPECT_EQ(post("once", "/api/v2/jobs/" + id + "/cancel", {}).status / 100, 2);
    EXPECT_EQ(comfyd_->http().del("/v2/workflows/execution/" + id, of("once")).status / 100, 2);
    const Reply other = submit("plain", "not limited");
    EXPECT_EQ(other.status, 201) << other.body;
    EXPECT_FALSE(other.headers.contains("RateLimit"));
    EXPECT_THAT(get("boss", "/metrics").body, HasSubstr("comfyd_requests_limited 6"));
}

TEST_F(Limits, ATokenBringsItsTier) {
    ASSERT_NO_FATAL_FAILURE(serve());
    const auto token = [](json::object claims) {
        claims["exp"] = to_unix_ms(SystemClock().now()) / 1000 + 3600;
        return header(
            "Authorization",
            "Bearer " + auth::jwt::test::hs_token(
                            kSecret, R"({"alg":"HS256","typ":"JWT"})", json::serialize(claims)
                        )
        );
    };
    const auto policy = [&](const net::Headers& headers) {
        const Reply reply = comfyd_->http().post_json(
            "/api/v2/jobs", {{"workflow", text_to_image("by token")}}, headers
        );
        EXPECT_EQ(reply.status, 201) << reply.body;
        return std::string(reply.headers.get("RateLimit-Policy"));
    };
    EXPECT_THAT(
        policy(token({{"user_id", "u1"}, {"tier", "premium"}})),
        StartsWith("\"minute\";q=300;w=60, \"running\";q=20")
    );
    EXPECT_THAT(
        policy(token({{"user_id", "u2"}})), StartsWith("\"minute\";q=10;w=60, \"running\";q=2")
    );
    EXPECT_THAT(policy(token({{"user_id", "u3"}, {"tier", "gold"}})), HasSubstr("q=10;"));
    set_tenant("u4", {{"tier", "basic"}});
    EXPECT_THAT(policy(token({{"user_id", "u4"}, {"tier", "enterprise"}})), HasSubstr("q=60;"));
}

TEST_F(Limits, RunTimeTenantsWaitTheirTurnAndAreCappedAtSubmit) {
    ASSERT_NO_FATAL_FAILURE(serve());
    set_tenant("later", {{"running_max", 1}, {"queued_max", 2}});
    const std::string one = id_of(submit("later", "one", "hang_interruptible"));
    ASSERT_TRUE(reaches("later", one, "running")) << comfyd_->log();
    const std::string two = id_of(submit("later", "two", "hang_interruptible"));
    const Reply third = submit("later", "three");
    EXPECT_EQ(third.status, 429) << third.body;
    EXPECT_EQ(third.json_at("/error/code"), "queue_full") << "what official clients try again";
    EXPECT_EQ(third.json_at("/error/details/reason"), "concurrent_limit_exceeded");
    EXPECT_TRUE(third.json_at("/error/details/retry_after").is_null());
    EXPECT_EQ(third.headers.get("Retry-After"), "2");
    const Reply seed =
        post("later", "/v2/workflows/execute", {{"workflow", text_to_image("three")}});
    EXPECT_EQ(seed.status, 429);
    EXPECT_EQ(seed.json_at("/error/details/reason"), "concurrent_limit_exceeded");

    // A worker is free: others use it, and the tenant as soon as it may.
    const std::string other = id_of(submit("plain", "other"));
    EXPECT_TRUE(reaches("plain", other, "succeeded")) << comfyd_->log();
    EXPECT_EQ(status("later", two), "queued");
    change_tenant("later", {{"running_max", 2}});
    EXPECT_TRUE(reaches("later", two, "running")) << comfyd_->log();

    EXPECT_EQ(post("later", "/api/v2/jobs/" + one + "/cancel", {}).status / 100, 2);
    ASSERT_TRUE(reaches("later", one, "canceled"));
    const std::string fourth = id_of(submit("later", "four"));
    EXPECT_TRUE(reaches("later", fourth, "succeeded")) << comfyd_->log();
}

TEST_F(Limits, AReplayIsAnsweredThoughNothingMoreMayComeIn) {
    ASSERT_NO_FATAL_FAILURE(serve());
    set_tenant("later", {{"queued_max", 1}});
    net::Headers headers = of("later");
    headers.set("Idempotency-Key", "k1");
    const json::object body{{"workflow", text_to_image("once", "hang_interruptible")}};
    const auto execute = [&] {
        return comfyd_->http().post_json("/v2/workflows/execute", body, headers);
    };
    const Reply first = execute();
    ASSERT_TRUE(first.ok()) << first.body;
    const Reply again = execute();
    EXPECT_TRUE(again.ok()) << again.body;
    EXPECT_EQ(again.json_at("/execution_id"), first.json_at("/execution_id"));
    EXPECT_TRUE(first.json_at("/execution_id").is_string()) << first.body;
    EXPECT_EQ(submit("later", "another").status, 429);
}

TEST_F(Limits, WhatWasUsedUpIsRefusedUntilTheDayIsOver) {
    ASSERT_NO_FATAL_FAILURE(serve());
    set_tenant("later", {{"gpu_seconds_per_day", 0.000001}});
    const std::string job = id_of(submit("later", "one"));
    ASSERT_TRUE(reaches("later", job, "succeeded"));
    Reply refused;
    ASSERT_TRUE(wait_until([&] {
        refused = submit("later", "more");
        return refused.status != 201;
    }));
    EXPECT_EQ(refused.status, 429) << refused.body;
    EXPECT_EQ(refused.json_at("/error/details/reason"), "quota_exceeded");
    const int wait = std::atoi(std::string(refused.headers.get("Retry-After")).c_str());
    EXPECT_GT(wait, 0);
    EXPECT_LE(wait, 86'400);

    change_tenant("later", {{"gpu_seconds_per_day", nullptr}, {"usd_per_month", 0.000000001}});
    ASSERT_TRUE(wait_until([&] {
        refused = submit("later", "more");
        return refused.status == 402;
    })) << refused.body;
    EXPECT_EQ(refused.json_at("/error/code"), "insufficient_credits");
    const Reply seed =
        post("later", "/v2/workflows/execute", {{"workflow", text_to_image("more")}});
    EXPECT_EQ(seed.status, 429) << seed.body;
    EXPECT_EQ(seed.json_at("/error/details/reason"), "insufficient_credits");
    EXPECT_EQ(submit("plain", "more").status, 201);
}

TEST_F(Limits, JobsWaitWhileTheBudgetOfTheirTenantIsSpent) {
    ASSERT_NO_FATAL_FAILURE(serve());
    const auto told = [this] {
        std::vector<std::string> all;
        const json::value events = get("boss", "/admin/v1/fleet/events").json();
        for (const json::value& event : events.at("events").as_array()) {
            const std::string what(event.at("what").as_string());
            all.push_back(what + " of " + std::string(event.at("tenant").as_string()));
        }
        return all;
    };
    const auto why = [this](const std::string& id) {
        return get("later", "/v2/workflows/execution/" + id + "/explain").body;
    };
    const auto waits = [&](const std::string& id) {
        return why(id).find("what its tenant may spend in a month is spent") != std::string::npos;
    };
    set_tenant("later", {{"budget", {{"usd_per_month", 0.000000001}}}});
    ASSERT_TRUE(reaches("later", id_of(submit("later", "one")), "succeeded"));
    // What comes before somebody has looked still runs.
    std::string id;
    int number = 0;
    ASSERT_TRUE(wait_until([&] {
        id = id_of(submit("later", "more " + std::to_string(number++)));
        return wait_until([&] { return waits(id) || status("later", id) == "succeeded"; }) &&
               waits(id);
    }));
    ASSERT_TRUE(reaches("plain", id_of(submit("plain", "another's")), "succeeded"));
    EXPECT_NE(status("later", id), "succeeded");
    EXPECT_THAT(told(), testing::ElementsAre("budget_spent of later"));
    EXPECT_THAT(
        get("boss", "/metrics").body,
        HasSubstr("comfyd_tenant_budget_left_usd{tenant=\"later\"} 0\n")
    );

    comfyd_->restart();
    ASSERT_TRUE(wait_until([&] { return waits(id); })) << why(id);
    ASSERT_TRUE(reaches("plain", id_of(submit("plain", "another's, later")), "succeeded"));
    EXPECT_NE(status("later", id), "succeeded");
    change_tenant("later", {{"budget", nullptr}});
    EXPECT_TRUE(reaches("later", id, "succeeded")) << why(id);
    EXPECT_THAT(told(), testing::ElementsAre("budget_spent of later")) << "once";
}

TEST_F(Limits, FilesHaveALimit) {
    ASSERT_NO_FATAL_FAILURE(serve());
    set_tenant("later", {{"stored_mb_max", 0.01}});
    const auto upload = [this](const std::string& tenant, std::size_t bytes) {
        return comfyd_->http().upload(
            "/upload/image", {{"image", "a.png", "image/png", std::string(bytes, 'x')}}, of(tenant)
        );
    };
    EXPECT_EQ(upload("later", 6'000).status, 200);
    const Reply refused = upload("later", 7'000);
    EXPECT_EQ(refused.status, 507) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("quota_exceeded"));
    EXPECT_EQ(upload("plain", 700'000).status, 200);
}

TEST_F(Limits, StrangersAreHeldUpAndNobodyElse) {
    ASSERT_NO_FATAL_FAILURE(
        serve("limits: {blocked_addresses: [203.0.113.0/24, \"2001:db8:bad::/48\"]}\n")
    );
    const auto from = [this](const std::string& address, const std::string& tenant) {
        return comfyd_->http().get("/api/v2/jobs", of(tenant, address)).status;
    };
    EXPECT_EQ(from("203.0.113.9", "plain"), 403);
    EXPECT_EQ(from("2001:db8:bad::9", "plain"), 403);
    EXPECT_EQ(from("198.51.100.1, 203.0.113.9", "plain"), 403) << "the proxy's own word";
    EXPECT_EQ(from("203.0.113.9, 198.51.100.1", "plain"), 200) << "the client's invention";

    EXPECT_EQ(from("198.51.100.1", "plain"), 200);
    Reply held;
    ASSERT_TRUE(wait_until([&] {
        held = comfyd_->http().get("/api/v2/jobs", of("nobody", "198.51.100.1"));
        return held.status == 429;
    }));
    EXPECT_EQ(held.json_at("/error/details/reason"), "rate_limit_exceeded");
    EXPECT_GE(std::atoi(std::string(held.headers.get("Retry-After")).c_str()), 1);
    EXPECT_EQ(from("198.51.100.1", "plain"), 200) << "known there";
    EXPECT_EQ(from("198.51.100.2", "nobody"), 401) << "another address";
    EXPECT_EQ(from("198.51.100.2", "plain"), 200);
    EXPECT_EQ(from("", "nobody"), 401) << "on this machine";
}

TEST_F(Limits, ADiskThatIsNearlyFullTakesNothingIn) {
    ASSERT_NO_FATAL_FAILURE(serve("limits: {disk_free_mb: 16777216}\n"));
    Reply refused;
    ASSERT_TRUE(wait_until([&] {
        refused = submit("plain", "one");
        return refused.status == 503;
    })) << refused.body;
    EXPECT_EQ(refused.json_at("/error/details/reason"), "disk_nearly_full");
    EXPECT_EQ(refused.headers.get("Retry-After"), "30");
    EXPECT_EQ(get("plain", "/api/v2/jobs").status, 200) << "what is there is served";
    EXPECT_THAT(get("boss", "/metrics").body, HasSubstr("comfyd_disk_nearly_full 1"));
}

TEST_F(Limits, TiersAreConfiguredAndNamedForAll) {
    ASSERT_NO_FATAL_FAILURE(
        serve("tiers: {basic: {requests_per_minute: 0.05, running_max: 1}}\n"
              "limits: {tier_default: basic}\n")
    );
    EXPECT_EQ(
        submit("plain", "one").headers.get("RateLimit-Policy"),
        "\"minute\";q=1;w=1200, \"running\";q=1;qu=\"concurrent-requests\""
    );
    EXPECT_EQ(submit("plain", "two").status, 429);
}

}  // namespace
}  // namespace comfyd::support
