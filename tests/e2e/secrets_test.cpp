// Nothing that is secret comes into a log, whatever is done with it.
#include <filesystem>

#include "auth/jwt/test_support.hpp"
#include "native_support.hpp"
#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

using testing::HasSubstr;
using testing::Not;

class SecretsE2e : public testing::Test {
protected:
    SecretsE2e() {
        ComfydOptions serve;
        serve.environment = {
            {"COMFYD_AUTH_KEYS", "boss=" + secret("key-of-the-boss")},
            {"COMFYD_AUTH_OPERATORS", "boss"},
            {"COMFYD_JWT_SECRET", secret("of-all-tokens-of-this-server")},
            {"COMFYD_AUDIT_FOLDER", folder_ / "audit"},
            {"COMFYD_AUDIT_EVENTS", "all"},
            {"COMFYD_AUDIT_RECEIVER", nowhere_.url("/checkpoints")},
            {"COMFYD_AUDIT_RECEIVER_TOKEN", secret("for-the-receiver")},
            {"COMFYD_LOG_LEVEL", "debug"},
        };
        // A store that nobody serves: every upload fails, and is told of.
        const std::string config = folder_.write(
            "comfyd.yaml",
            "stores:\n  - {name: far, provider: s3, bucket: outputs, region: us-east-1, "
            "endpoint: \"http://127.0.0.1:9\", access_key: " +
                secret("access-key-id") + ", secret_key: " + secret("of-the-bucket") +
                "}\nresults: {store: far}\n"
        );
        serve.arguments = {"--config", config};
        comfyd_ = std::make_unique<Comfyd>(serve);
    }
    // Remembered, to be looked for.
    std::string secret(const std::string& text) {
        secrets_.push_back("s3cr3t-" + text + "-0123456789abcdef");
        return secrets_.back();
    }
    std::unique_ptr<Http> client(const std::string& key) const {
        auto made = std::make_unique<Http>(comfyd_->url());
        made->set_header("Authorization", "Bearer " + key);
        return made;
    }

    TempDir folder_;
    WebhookReceiver nowhere_;
    std::vector<std::string> secrets_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(SecretsE2e, NeverStandInALog) {
    nowhere_.script_statuses(std::vector<int>(50, 500));
    const std::string boss_key = secrets_.front();
    const auto boss = client(boss_key);
    const Reply key = boss->post_json("/admin/v1/keys", {{"name", "app"}});
    ASSERT_EQ(key.status, 201) << key.body;
    secrets_.emplace_back(key.json_at("/key").as_string());
    const auto app = client(secrets_.back());
    const std::string token = auth::jwt::test::hs_token(
        secrets_[1], R"({"alg":"HS256"})", R"({"user_id":"u-1","exp":4000000000})"
    );
    secrets_.push_back(token);
    EXPECT_EQ(client(token)->get("/api/v2/jobs").status, 200);
    EXPECT_EQ(client(token + "x")->get("/api/v2/jobs").status, 401);
    EXPECT_EQ(client(secret("a-wrong-key"))->get("/api/v2/jobs").status, 401);

    // A job whose webhook fails, with a secret and a header of its own.
    const Reply job = app->post_json(
        "/v2/workflows/execute",
        {{"workflow", small_picture(7)},
         {"webhook_config",
          {{"url", nowhere_.url("/hook") + "?key=" + secret("in-a-webhook-address")},
           {"secret", secret("of-a-webhook")},
           {"headers", {{"X-Mine", secret("in-a-header")}}}}}}
    );
    ASSERT_EQ(job.status, 202) << job.body;
    const std::string id(job.json_at("/execution_id").as_string());
    // Addresses with a user, as an input, a webhook and a worker's answer would have them.
    app->post_json(
        "/v2/workflows/execute",
        {{"workflow", small_picture(8)},
         {"webhook_config", {{"url", "http://me:" + secret("password") + "@127.0.0.1:9/hook"}}}}
    );
    json::object fetched = small_picture(9);
    fetched["1"] = json::object{
        {"class_type", "LoadImage"},
        {"inputs",
         {{"image", "http://me:" + secret("of-an-input") + "@127.0.0.1:9/a.png?x=" + secret("q")}}}
    };
    app->post_json("/v2/workflows/execute", {{"workflow", fetched}});
    // A ticket, good once and then never; a key in an address.
    const Reply ticket = app->post_json("/v2/stream-tickets", json::object{{"execution_id", id}});
    ASSERT_EQ(ticket.status, 201) << ticket.body;
    secrets_.emplace_back(ticket.json_at("/ticket").as_string());
    Http nobody(comfyd_->url());
    EXPECT_EQ(nobody.get("/api/v2/jobs?ticket=" + secrets_.back()).status, 401);
    EXPECT_EQ(nobody.get("/view?filename=x&token=" + secret("token-in-query")).status, 401);
    // A signed link to an output.
    const std::string path = "/v2/workflows/execution/" + id;
    ASSERT_TRUE(wait_until([&] {
        return app->get(path).json_at("/status") == json::value("completed");
    })) << app->get(path).body;
    ASSERT_TRUE(wait_until([&] { return nowhere_.requests().size() >= 2; }));
    comfyd_->stop();

    std::string logs = comfyd_->log();
    EXPECT_THAT(logs, HasSubstr("\"level\":\"debug\""));
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "audit")) {
        logs += read_file(entry.path());
    }
    EXPECT_GT(secrets_.size(), 14U);
    for (const std::string& one : secrets_) {
        EXPECT_THAT(logs, Not(HasSubstr(one)));
    }
}

TEST(Prompts, AreKeptOutOfTheLogWhereThatIsWished) {
    const std::string prompt = "a very private picture of nobody";
    for (const bool hides : {true, false}) {
        net::IoThread thread("double");
        thread.start();
        ComfyDouble worker(thread.context(), {});
        worker.start();
        ComfydOptions serve;
        serve.environment = {
            {"COMFYD_LOG_LEVEL", "debug"},
            {"COMFYD_LOG_REDACT_PROMPTS", hides ? "true" : "false"},
        };
        serve.arguments = {"--no-engine", "--worker", worker.url()};
        Comfyd comfyd(serve);
        const std::string id = comfyd.submit(text_to_image(prompt, prompt));
        comfyd.wait_finished(id);
        comfyd.stop();
        if (hides) {
            EXPECT_THAT(comfyd.log(), Not(HasSubstr(prompt)));
            EXPECT_THAT(comfyd.log(), HasSubstr("bytes not shown"));
        } else {
            EXPECT_THAT(comfyd.log(), HasSubstr(prompt)) << "what is hidden is there";
        }
    }
}

}  // namespace
}  // namespace comfyd::support
