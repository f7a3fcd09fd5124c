// Webhooks from the real binary to a real receiver.
#include <gtest/gtest.h>

#include <set>

#include "base/crypto.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
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

// The receiver that clients in Python write: it checks the signature over the body that it gets by
// writing the parsed one again. Says which of the messages it refuses.
std::string refused_by_python(const std::vector<ReceivedRequest>& received) {
    constexpr const char* kReceiver = R"python(
import hashlib, hmac, json, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    payload = json.loads(message["body"])
    text = json.dumps(payload, separators=(",", ":"))
    expected = hmac.new("s3cret".encode(), text.encode(), hashlib.sha256).hexdigest()
    for name in ("X-Signature", "X-Webhook-Signature"):
        if not hmac.compare_digest(f"sha256={expected}", message[name]):
            print("refused:", name, message["body"])
)python";
    std::string lines;
    for (const ReceivedRequest& request : received) {
        json::object message{{"body", request.body}};
        for (const char* name : {"X-Signature", "X-Webhook-Signature"}) {
            message[name] = request.headers.get(name);
        }
        lines += json::serialize(message) + "\n";
    }
    const TempDir folder;
    const std::string file = folder.write("messages", lines);
    Process python({"python3", folder.write("receiver.py", kReceiver), file});
    EXPECT_EQ(python.wait(), 0) << python.errors();
    return python.output();
}

std::vector<std::string> names_of(const std::vector<ReceivedRequest>& received) {
    std::vector<std::string> names;
    for (const ReceivedRequest& request : received) {
        names.emplace_back(request.headers.get("X-Webhook-Event"));
    }
    return names;
}

TEST(Webhooks, AReceiverInPythonVerifiesEveryEvent) {
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
        const json::object webhook{
            {"url", receiver.url()},
            {"secret", "s3cret"},
            {"events",
             {"execution.queued",
              "execution.started",
              "execution.progress",
              "execution.completed",
              "execution.failed",
              "execution.cancelled",
              "execution.warning"}}
        };
        const json::object metadata{{"ä", "naïve ☃ 😀"}, {"ratio", 0.1}, {"large", 1e22}};
        const auto execute = [&](json::object workflow, json::object more = {}) {
            more["workflow"] = std::move(workflow);
            more["webhook_config"] = webhook;
            more["metadata"] = metadata;
            const Reply reply = comfyd.http().post_json("/v2/workflows/execute", more);
            EXPECT_EQ(reply.status, 202) << reply.body;
            return std::string(reply.json_at("/execution_id").as_string());
        };
        ASSERT_TRUE(wait_until([&] {
            return comfyd.http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(2);
        }));
        execute(text_to_image("a warning"), {{"execution_config", {{"batch_size", 2}}}});
        execute(text_to_image("failed", "node_error"));
        const std::string waits = execute(text_to_image("cancelled"));
        comfyd.http().post("/v2/workflows/execution/" + waits + "/cancel", "");
        const std::set<std::string> all{
            "execution.queued",
            "execution.started",
            "execution.progress",
            "execution.completed",
            "execution.failed",
            "execution.cancelled",
            "execution.warning"
        };
        EXPECT_TRUE(wait_until([&] {
            const auto names = names_of(receiver.requests());
            return std::set(names.begin(), names.end()) == all;
        })) << testing::PrintToString(names_of(receiver.requests()));
    }
    EXPECT_EQ(refused_by_python(receiver.requests()), "");
    for (const ReceivedRequest& request : receiver.requests()) {
        const json::value body = request.json();
        const json::value& data = body.at("data");
        if (body.at("event") == "execution.completed") {
            const json::value& result = body.at("result");
            EXPECT_TRUE(result.at("outputs").at(0).at("url").is_string());
            EXPECT_EQ(result.at("images").at(0), result.at("outputs").at(0).at("url"));
        } else if (body.at("event") == "execution.queued") {
            EXPECT_TRUE(data.at("queue_position").is_int64()) << request.body;
            EXPECT_TRUE(data.at("estimated_wait_seconds").is_int64()) << request.body;
        } else if (body.at("event") == "execution.started") {
            EXPECT_TRUE(data.at("estimated_duration_seconds").is_int64()) << request.body;
        } else if (body.at("event") == "execution.progress") {
            EXPECT_TRUE(data.at("eta_seconds").is_int64()) << request.body;
        } else if (body.at("event") == "execution.warning") {
            EXPECT_EQ(data.at("warnings").at(0).at("field"), "execution_config.batch_size");
        }
        EXPECT_FALSE(request.headers.get("X-Webhook-ID").empty());
        EXPECT_FALSE(request.headers.get("X-Webhook-Timestamp").empty());
    }
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
