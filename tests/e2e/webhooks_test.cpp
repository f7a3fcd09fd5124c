// Webhooks from the real binary to a real receiver.
#include <gtest/gtest.h>

#include "base/crypto.hpp"
#include "support/comfyd.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

TEST(Webhooks, AreSignedAndToldOnce) {
    Comfyd comfyd;
    WebhookReceiver receiver;
    const Reply made = comfyd.http().post_json(
        "/v2/workflows/execute",
        {{"workflow", small_picture()},
         {"webhook_config",
          {{"url", receiver.url()}, {"secret", "s3cret"}, {"headers", {{"X-Mine", "yes"}}}}}}
    );
    ASSERT_EQ(made.status, 202) << made.body;
    const std::string id(made.json_at("/execution_id").as_string());
    ASSERT_TRUE(receiver.wait_for(1));
    const ReceivedRequest request = receiver.requests().front();
    EXPECT_EQ(request.headers.get("X-Execution-ID"), id);
    EXPECT_EQ(request.headers.get("X-Mine"), "yes");
    EXPECT_EQ(
        request.headers.get("X-Signature"), "sha256=" + to_hex(hmac_sha256("s3cret", request.body))
    );
    const std::string signed_text = std::string(request.headers.get("webhook-id")) + "." +
                                    std::string(request.headers.get("webhook-timestamp")) + "." +
                                    request.body;
    const Digest digest = hmac_sha256("s3cret", signed_text);
    EXPECT_EQ(
        request.headers.get("webhook-signature"),
        "v1," + to_base64(std::string(reinterpret_cast<const char*>(digest.data()), digest.size()))
    );
    EXPECT_EQ(request.json().at("execution_id"), json::value(id));
    EXPECT_EQ(request.json().at("status"), "completed");
    EXPECT_EQ(request.json().at("event"), "execution.completed");
    EXPECT_TRUE(wait_until([&] {
        return comfyd.http().get("/v2/workflows/execution/" + id).json_at("/webhook_delivered") ==
               json::value(true);
    }));
    EXPECT_EQ(receiver.requests().size(), 1U);
}

TEST(Webhooks, EventsOfAJobArriveInOrderThroughFailures) {
    Comfyd comfyd;
    WebhookReceiver receiver;
    receiver.script_statuses({500, 503, 200, 500, 200, 200});
    comfyd.submit(
        small_picture(),
        {{"webhook_config",
          {{"url", receiver.url()},
           {"events", {"execution.queued", "execution.started", "execution.completed"}}}}}
    );
    ASSERT_TRUE(receiver.wait_for(6));
    std::vector<std::string> delivered;
    std::string last;
    for (const ReceivedRequest& request : receiver.requests()) {
        const std::string event(request.json().at("event").as_string());
        if (event != last) {
            delivered.push_back(event);
        }
        last = event;
    }
    EXPECT_EQ(
        delivered,
        (std::vector<std::string>{"execution.queued", "execution.started", "execution.completed"})
    );
}

TEST(Webhooks, ARestartDeliversWhatWasLeft) {
    Comfyd comfyd;
    WebhookReceiver receiver;
    receiver.script(std::vector<ScriptedAnswer>(3, ScriptedAnswer{.status = 500}));
    net::Headers header;
    header.set("X-Webhook-URL", receiver.url());
    const Reply made =
        comfyd.http().post_json("/comfyui/execute", {{"workflow", small_picture()}}, header);
    ASSERT_EQ(made.status, 202) << made.body;
    EXPECT_EQ(made.json_at("/webhook_url"), json::value(receiver.url()));
    ASSERT_TRUE(receiver.wait_for(1));
    comfyd.restart();
    ASSERT_TRUE(receiver.wait_for(4));
    const std::string id(made.json_at("/execution_id").as_string());
    EXPECT_TRUE(wait_until([&] {
        return comfyd.http().get("/v1/workflows/execution/" + id).json_at("/webhook_delivered") ==
               json::value(true);
    }));
}

TEST(Webhooks, ADeadReceiverDelaysNobodyElse) {
    Comfyd comfyd;
    WebhookReceiver dead;
    WebhookReceiver alive;
    dead.script(std::vector<ScriptedAnswer>(
        100, ScriptedAnswer{.status = 200, .delay = std::chrono::seconds(20)}
    ));
    for (int i = 0; i < 20; ++i) {
        comfyd.submit(small_picture(i), {{"webhook_url", dead.url()}});
    }
    comfyd.submit(small_picture(99), {{"webhook_url", alive.url()}});
    EXPECT_TRUE(alive.wait_for(1, std::chrono::seconds(15)));
}

TEST(Webhooks, PrivateAddressesAreRefusedByDefault) {
    ComfydOptions options;
    options.arguments = {"--set", "webhooks.allow_private_addresses=false"};
    Comfyd comfyd(options);
    for (const char* url :
         {"http://127.0.0.1:9/x",
          "http://10.1.2.3/",
          "http://[::1]/",
          "http://169.254.169.254/latest",
          "ftp://example.com/",
          "http://user:pw@example.com/",
          "not a url"}) {
        const Reply reply = comfyd.http().post_json(
            "/api/v2/jobs", {{"workflow", small_picture()}, {"webhook_url", url}}
        );
        EXPECT_EQ(reply.status / 100, 4) << url << " " << reply.body;
    }
}

}  // namespace
}  // namespace comfyd::support
