// Endpoints of webhooks and what becomes of deliveries, by the API and the command line of the real
// binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/process.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

constexpr const char* kEndpoints = "/v2/webhooks/endpoints";
constexpr const char* kDeliveries = "/v2/webhooks/deliveries";

class Endpoints : public testing::Test {
protected:
    json::object create(json::object wanted, net::Headers headers = {}) {
        const Reply made = comfyd_.http().post_json(kEndpoints, wanted, std::move(headers));
        EXPECT_EQ(made.status, 201) << made.body;
        return made.json().as_object();
    }
    static std::string text(const json::object& from, std::string_view key) {
        return std::string(from.at(key).as_string());
    }
    Reply send(const std::string& method, const std::string& path, const json::object& body = {}) {
        return comfyd_.http().send({.method = method, .url = path, .body = json::serialize(body)});
    }
    std::vector<json::value> deliveries(const std::string& query) {
        const Reply reply = comfyd_.http().get(kDeliveries + query);
        EXPECT_EQ(reply.status, 200) << reply.body;
        const json::value listed = reply.json_at("/deliveries");
        return {listed.as_array().begin(), listed.as_array().end()};
    }
    static bool is_signed(const ReceivedRequest& request, const std::string& secret) {
        const auto key = from_base64(std::string_view(secret).substr(6));
        const std::string text = std::string(request.headers.get("webhook-id")) + "." +
                                 std::string(request.headers.get("webhook-timestamp")) + "." +
                                 request.body;
        const Digest digest = hmac_sha256(key.value_or(""), text);
        const std::string one =
            "v1," + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
        return request.headers.get("webhook-signature").find(one) != std::string_view::npos;
    }
    std::string command(std::vector<std::string> arguments, int expected = 0) {
        arguments.insert(arguments.begin(), {COMFYD_BINARY, "webhooks"});
        arguments.insert(arguments.end(), {"--url", comfyd_.url()});
        Process process(arguments);
        EXPECT_EQ(process.wait(), expected) << process.errors();
        return process.output() + process.errors();
    }

    Comfyd comfyd_;
    WebhookReceiver receiver_;
};

TEST_F(Endpoints, AreToldOfAllJobsOfTheirTenant) {
    const auto made = create({{"url", receiver_.url("/all")}});
    const std::string secret = text(made, "secret");
    EXPECT_TRUE(secret.starts_with("whsec_")) << secret;
    const std::string id = comfyd_.submit(small_picture());
    ASSERT_TRUE(receiver_.wait_for(1));
    const ReceivedRequest request = receiver_.requests().front();
    EXPECT_EQ(request.path, "/all");
    EXPECT_EQ(request.json().at("event"), "execution.completed");
    EXPECT_EQ(request.json().at("execution_id"), json::value(id));
    EXPECT_TRUE(is_signed(request, secret));
    ASSERT_TRUE(wait_until([&] { return !deliveries("?state=delivered").empty(); }));
    const auto shown = deliveries("?receiver=" + text(made, "id")).at(0);
    EXPECT_EQ(shown.at("event"), "execution.completed");
    EXPECT_EQ(shown.at("url"), json::value(receiver_.url("/all")));
    EXPECT_EQ(shown.at("log").at(0).at("status"), 200);
}

TEST_F(Endpoints, AJobTellsItsOwnWebhookAndEveryEndpoint) {
    create({{"url", receiver_.url("/one")}, {"events", {"execution.queued", "execution.completed"}}}
    );
    create({{"url", receiver_.url("/two")}, {"scheme", "x-signature"}, {"secret", "s3cret"}});
    create({{"url", receiver_.url("/no")}, {"events", {"execution.failed"}}});
    comfyd_.submit(small_picture(), {{"webhook_url", receiver_.url("/own")}});
    ASSERT_TRUE(receiver_.wait_for(4));
    std::multiset<std::string> told;
    for (const ReceivedRequest& request : receiver_.requests()) {
        told.insert(request.path + " " + std::string(request.json().at("event").as_string()));
        if (request.path == "/two") {
            EXPECT_EQ(
                request.headers.get("X-Signature"),
                "sha256=" + to_hex(hmac_sha256("s3cret", request.body))
            );
        }
    }
    EXPECT_EQ(
        told,
        (std::multiset<std::string>{
            "/one execution.completed",
            "/one execution.queued",
            "/own execution.completed",
            "/two execution.completed"
        })
    );
}

TEST_F(Endpoints, AreChangedRotatedTestedAndRemoved) {
    const auto made = create(
        {{"url", receiver_.url("/first")},
         {"headers", {{"Authorization", "Bearer hidden"}}},
         {"description", "shop"},
         {"timeout", 2.5}}
    );
    const std::string path = std::string(kEndpoints) + "/" + text(made, "id");
    const Reply shown = comfyd_.http().get(path);
    EXPECT_EQ(shown.body.find("secret\":\"wh"), std::string::npos);
    EXPECT_EQ(shown.body.find("hidden"), std::string::npos);
    EXPECT_EQ(shown.json_at("/description"), "shop");

    const Reply changed = send(
        "PATCH",
        path,
        {{"url", receiver_.url("/second")}, {"timeout", nullptr}, {"body", "cloudevents"}}
    );
    ASSERT_EQ(changed.status, 200) << changed.body;
    EXPECT_TRUE(changed.json_at("/timeout").is_null());
    EXPECT_EQ(changed.json_at("/description"), "shop");

    const Reply rotated = send("POST", path + "/rotate");
    ASSERT_EQ(rotated.status, 200) << rotated.body;
    const Reply tested = send("POST", path + "/test", {{"event", "execution.failed"}});
    ASSERT_EQ(tested.status, 200) << tested.body;
    EXPECT_EQ(tested.json_at("/delivered"), json::value(true));
    ASSERT_EQ(receiver_.requests().size(), 1U);
    const ReceivedRequest sample = receiver_.requests().front();
    EXPECT_EQ(sample.path, "/second");
    EXPECT_EQ(sample.headers.get("Authorization"), "Bearer hidden");
    EXPECT_EQ(sample.json().at("type"), "execution.failed");
    EXPECT_TRUE(is_signed(sample, text(made, "secret")));
    EXPECT_TRUE(is_signed(sample, std::string(rotated.json_at("/secret").as_string())));

    EXPECT_EQ(comfyd_.http().get(kEndpoints).json_at("/count"), 1);
    EXPECT_EQ(send("DELETE", path).status, 204);
    EXPECT_EQ(comfyd_.http().get(path).status, 404);
    EXPECT_EQ(comfyd_.http().get(kEndpoints).json_at("/count"), 0);
}

TEST_F(Endpoints, WhatCannotBeIsRefused) {
    const auto refused = [&](json::object wanted) {
        const Reply reply = comfyd_.http().post_json(kEndpoints, wanted);
        EXPECT_EQ(reply.status / 100, 4) << json::serialize(wanted) << reply.body;
    };
    refused({});
    refused({{"url", "ftp://example.com/"}});
    refused({{"url", 7}});
    const std::string url = receiver_.url();
    refused({{"url", url}, {"events", {"execution.exploded"}}});
    refused({{"url", url}, {"scheme", "rot13"}});
    refused({{"url", url}, {"body", "xml"}});
    refused({{"url", url}, {"method", "GET"}});
    refused({{"url", url}, {"verify_ssl", false}});
    refused({{"url", url}, {"headers", {{"webhook-signature", "mine"}}}});
    refused({{"url", url}, {"secret", std::string(300, 'x')}});
    refused({{"url", url}, {"description", std::string(2000, 'x')}});
    EXPECT_EQ(comfyd_.http().get(std::string(kEndpoints) + "/x").status, 404);
    EXPECT_EQ(comfyd_.http().get(std::string(kDeliveries) + "?state=odd").status, 400);
    EXPECT_EQ(comfyd_.http().get(std::string(kDeliveries) + "?limit=0").status, 400);
    EXPECT_EQ(comfyd_.http().get(std::string(kDeliveries) + "/x").status, 404);
}

TEST_F(Endpoints, OneThatSaysGoneIsDisabledAndCanBeEnabledAgain) {
    const auto made =
        create({{"url", receiver_.url()}, {"events", {"execution.queued", "execution.completed"}}});
    const std::string path = std::string(kEndpoints) + "/" + text(made, "id");
    receiver_.script_statuses({410});
    const std::string id = comfyd_.submit(small_picture());
    ASSERT_TRUE(wait_until([&] {
        return comfyd_.http().get(path).json_at("/enabled") == json::value(false);
    }));
    // The end of the job may have come before it was disabled, and then waits no more either. After
    // it there is nothing more to tell.
    comfyd_.wait_finished(id);
    ASSERT_TRUE(wait_until([&] {
        return !deliveries("?state=dead").empty() && deliveries("?state=pending").empty();
    }));
    const std::size_t dead_letters = deliveries("?state=dead").size();
    for (const json::value& dead : deliveries("?state=dead")) {
        EXPECT_NE(dead.at("error").as_string().find("410"), std::string::npos);
    }
    EXPECT_NE(command({"endpoints"}).find("DISABLED"), std::string::npos);
    EXPECT_EQ(send("PATCH", path, {{"enabled", true}}).status, 200);
    const Reply replayed = send("POST", std::string(kDeliveries) + "/replay");
    EXPECT_EQ(replayed.json_at("/replayed"), json::value(dead_letters));
    ASSERT_TRUE(receiver_.wait_for(1 + dead_letters));
    EXPECT_EQ(receiver_.requests()[1].json().at("event"), "execution.queued");
    EXPECT_EQ(
        receiver_.requests()[0].headers.get("webhook-id"),
        receiver_.requests()[1].headers.get("webhook-id")
    );
}

TEST_F(Endpoints, DeadLettersAreSeenReplayedAndThrownAwayByTheCommandLine) {
    receiver_.script_statuses({500, 500, 500});
    for (int i = 0; i < 3; ++i) {
        comfyd_.submit(
            small_picture(i), {{"webhook_config", {{"url", receiver_.url()}, {"max_retries", 0}}}}
        );
    }
    ASSERT_TRUE(wait_until([&] { return deliveries("?state=dead").size() == 3; }));
    const std::string listed = command({"deliveries", "--state", "dead"});
    EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 3) << listed;
    const std::string first(deliveries("?state=dead").at(0).at("id").as_string());
    EXPECT_NE(command({"show", first}).find("HTTP 500"), std::string::npos);
    command({"replay", first});
    ASSERT_TRUE(receiver_.wait_for(4));
    ASSERT_TRUE(wait_until([&] { return deliveries("?state=delivered").size() == 1; }));
    command({"replay", first}, 4);
    command({"purge"}, 2);
    EXPECT_EQ(command({"purge", "--all"}), "2 thrown away\n");
    EXPECT_TRUE(deliveries("?state=dead").empty());
    EXPECT_EQ(command({"replay", "--all"}), "0 to be sent again\n");
}

TEST_F(Endpoints, ADeadLetterShowsWhatIsSentButNoSecrets) {
    receiver_.script_statuses({410});
    const auto made = create(
        {{"url", receiver_.url("/hook?to=shop")},
         {"scheme", "all"},
         {"headers", {{"X-Password", "swordfish"}}}}
    );
    comfyd_.submit(small_picture());
    ASSERT_TRUE(wait_until([&] { return deliveries("?state=dead").size() == 1; }));
    const auto listed = deliveries("?state=dead").at(0).as_object();
    EXPECT_FALSE(listed.contains("request")) << "only one that is asked for by itself";
    const Reply shown = comfyd_.http().get(std::string(kDeliveries) + "/" + text(listed, "id"));
    ASSERT_EQ(shown.status, 200) << shown.body;
    const auto request = shown.json_at("/request").as_object();
    const ReceivedRequest sent = receiver_.requests().front();
    EXPECT_EQ(text(request, "body"), sent.body) << "also where the endpoint is disabled since";
    EXPECT_EQ(text(request, "url"), receiver_.url("/hook?to=shop"));
    EXPECT_EQ(text(request, "method"), "POST");
    const auto& headers = request.at("headers").as_object();
    for (const char* same : {"webhook-id", "X-Execution-ID", "X-Webhook-Event", "Content-Type"}) {
        EXPECT_EQ(text(headers, same), sent.headers.get(same)) << same;
    }
    for (const char* hidden :
         {"X-Password", "X-Signature", "X-Webhook-Signature", "webhook-signature"}) {
        EXPECT_EQ(text(headers, hidden), "***") << hidden;
    }
    EXPECT_EQ(shown.body.find("swordfish"), std::string::npos);
    EXPECT_EQ(shown.body.find(text(made, "secret")), std::string::npos);
    EXPECT_EQ(send("DELETE", std::string(kEndpoints) + "/" + text(made, "id")).status, 204);
    const Reply removed = comfyd_.http().get(std::string(kDeliveries) + "/" + text(listed, "id"));
    EXPECT_EQ(removed.json_at("/request"), nullptr);
}

TEST_F(Endpoints, DeadLettersAreCountedBeforeAnythingIsDone) {
    receiver_.script_statuses({500, 500, 500});
    std::string job;
    for (int i = 0; i < 3; ++i) {
        job = comfyd_.submit(
            small_picture(i), {{"webhook_config", {{"url", receiver_.url()}, {"max_retries", 0}}}}
        );
    }
    ASSERT_TRUE(wait_until([&] { return deliveries("?state=dead").size() == 3; }));
    const std::string purge = std::string(kDeliveries) + "/purge";
    const auto matching = [&](json::object filter) {
        filter["dry_run"] = true;
        const Reply reply = send("POST", purge, filter);
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_EQ(reply.json_at("/purged"), 0);
        EXPECT_EQ(reply.json_at("/more"), false);
        return reply.json_at("/matching");
    };
    EXPECT_EQ(matching({}), 3);
    EXPECT_EQ(matching({{"receiver", "job"}}), 3);
    EXPECT_EQ(matching({{"receiver", "nobody"}}), 0);
    EXPECT_EQ(matching({{"execution_id", job}}), 1);
    EXPECT_EQ(send("POST", purge, {{"execution_id", "nonsense"}}).status, 400);
    EXPECT_EQ(send("POST", purge, {{"dry_run", "yes"}}).status, 400);
    EXPECT_EQ(deliveries("?state=dead").size(), 3U);
    EXPECT_EQ(send("POST", purge, {{"execution_id", job}}).json_at("/purged"), 1);
    EXPECT_EQ(deliveries("?state=dead").size(), 2U);
}

TEST_F(Endpoints, SurviveAKill) {
    const auto made = create({{"url", receiver_.url("/kept")}});
    comfyd_.restart();
    comfyd_.submit(small_picture());
    ASSERT_TRUE(receiver_.wait_for(1));
    EXPECT_TRUE(is_signed(receiver_.requests().front(), text(made, "secret")));
}

TEST(EndpointsOfTenants, DoNotMeet) {
    ComfydOptions options;
    const auto key = [](const char* secret) { return to_hex(sha256(secret)); };
    const TempDir folder;
    options.arguments = {
        "--config",
        folder.write(
            "comfyd.yaml",
            "auth:\n  keys:\n    - {name: a, tenant: acme, sha256: " + key("sesame") +
                "}\n    - {name: b, tenant: other, sha256: " + key("abracadabra") + "}\n"
        )
    };
    Comfyd comfyd(options);
    WebhookReceiver receiver;
    const auto as = [](const char* secret) {
        net::Headers headers;
        headers.set("Authorization", std::string("Bearer ") + secret);
        return headers;
    };
    const Reply made = comfyd.http().post_json(kEndpoints, {{"url", receiver.url()}}, as("sesame"));
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string path =
        std::string(kEndpoints) + "/" + std::string(made.json_at("/id").as_string());
    EXPECT_EQ(comfyd.http().get(path, as("sesame")).status, 200);
    EXPECT_EQ(comfyd.http().get(path, as("abracadabra")).status, 404);
    EXPECT_EQ(comfyd.http().get(kEndpoints, as("abracadabra")).json_at("/count"), 0);
    EXPECT_EQ(comfyd.http().get(kEndpoints).status, 401);
    EXPECT_EQ(
        comfyd.http().get(std::string(kDeliveries) + "?all_tenants=true", as("sesame")).status, 403
    );
    comfyd.submit(small_picture(1), {}, as("abracadabra"));
    const std::string mine = comfyd.submit(small_picture(2), {}, as("sesame"));
    ASSERT_TRUE(receiver.wait_for(1));
    EXPECT_EQ(receiver.requests().front().json().at("execution_id"), json::value(mine));
    ASSERT_TRUE(wait_until([&] {
        return comfyd.http().get(kDeliveries, as("sesame")).json_at("/count") == 1;
    }));
    EXPECT_EQ(comfyd.http().get(kDeliveries, as("abracadabra")).json_at("/count"), 0);
}

TEST(DeadLettersOfTenants, AreSeenByOperatorsButNotWhatIsInThem) {
    ComfydOptions options;
    options.arguments = {
        "--set",
        "auth.keys=acme=open sesame of acme,ops=open sesame of ops",
        "--set",
        "auth.operators=ops"
    };
    Comfyd comfyd(options);
    WebhookReceiver receiver;
    receiver.script_statuses({500});
    const auto as = [](const char* name) {
        net::Headers headers;
        headers.set("Authorization", std::string("Bearer open sesame of ") + name);
        return headers;
    };
    comfyd.submit(
        small_picture(),
        {{"webhook_config", {{"url", receiver.url()}, {"max_retries", 0}}}},
        as("acme")
    );
    const std::string all = std::string(kDeliveries) + "?state=dead&all_tenants=true";
    ASSERT_TRUE(wait_until([&] { return comfyd.http().get(all, as("ops")).json_at("/count") == 1; })
    );
    const std::string one =
        std::string(kDeliveries) + "/" +
        std::string(comfyd.http().get(all, as("ops")).json_at("/deliveries/0/id").as_string());
    EXPECT_TRUE(comfyd.http().get(one, as("acme")).json_at("/request").is_object());
    EXPECT_EQ(comfyd.http().get(one, as("ops")).status, 200);
    EXPECT_TRUE(comfyd.http().get(one, as("ops")).json_at("/request").is_null());
    const auto matching = [&](const std::string& query) {
        return comfyd.http()
            .post_json(std::string(kDeliveries) + "/purge" + query, {{"dry_run", true}}, as("ops"))
            .json_at("/matching");
    };
    EXPECT_EQ(matching(""), 0);
    EXPECT_EQ(matching("?all_tenants=true"), 1);
}

TEST(EndpointsOfSlowJobs, HearOfProgressOnceASecondAtMost) {
    net::IoThread thread("double");
    thread.start();
    DoubleOptions slow;
    slow.delay = Millis(500);
    ComfyDouble worker(thread.context(), slow);
    worker.start();
    WebhookReceiver receiver;
    {
        ComfydOptions options;
        options.arguments = {"--worker", worker.url(), "--set", "fleet.poll_ms=100"};
        Comfyd comfyd(options);
        const Reply made = comfyd.http().post_json(
            kEndpoints,
            {{"url", receiver.url()}, {"events", {"execution.progress", "execution.completed"}}}
        );
        ASSERT_EQ(made.status, 201) << made.body;
        comfyd.submit(text_to_image("slow"));
        ASSERT_TRUE(wait_until([&] {
            const auto requests = receiver.requests();
            return !requests.empty() && requests.back().json().at("event") == "execution.completed";
        }));
        EXPECT_EQ(receiver.requests().front().json().at("event"), "execution.progress");
    }
}

}  // namespace
}  // namespace comfyd::support
