#include "notify/webhook_message.hpp"

#include <gtest/gtest.h>

#include "notify/webhook_signing.hpp"
#include "notify/webhook_url.hpp"

namespace comfyd::notify {
namespace {

const Time kCreated = *parse_rfc3339("2026-01-02T03:04:05.000Z");

jobs::Job queued_job() {
    jobs::Spec spec;
    spec.metadata = {{"order", 17}};
    jobs::Job job =
        jobs::make_job(*JobId::parse("018bcfe5-6800-7000-8000-000000000001"), spec, kCreated).job;
    return job;
}

jobs::Job running_job() {
    return jobs::start(queued_job(), "gpu-1", 2, kCreated + Millis(1000)).value().job;
}

jobs::Failure out_of_memory() {
    jobs::Failure failure;
    failure.code = Code::out_of_memory;
    failure.message = "the GPU is full";
    failure.node_id = "3";
    return failure;
}

json::object body_of(const jobs::Change& change) {
    return json::parse_object(webhook_body(change.job, change.event)).value();
}

TEST(WebhookBody, TellsOfACompletedJob) {
    jobs::Output output;
    output.name = "a.png";
    const auto change =
        jobs::complete(running_job(), {output}, {}, 7, kCreated + Millis(3500)).value();
    const json::object body = body_of(change);
    EXPECT_EQ(body.at("event"), "execution.completed");
    EXPECT_EQ(body.at("type"), "execution.completed");
    EXPECT_EQ(body.at("execution_id"), "018bcfe5-6800-7000-8000-000000000001");
    EXPECT_EQ(body.at("timestamp"), "2026-01-02T03:04:08.500Z");
    EXPECT_EQ(body.at("status"), "completed");
    EXPECT_EQ(body.at("submitted_at"), "2026-01-02T03:04:05.000Z");
    EXPECT_EQ(body.at("completed_at"), "2026-01-02T03:04:08.500Z");
    EXPECT_EQ(body.at("execution_time").to_number<double>(), 2.5);
    EXPECT_EQ(body.at("result").at("outputs").at(0).at("name"), "a.png");
    EXPECT_TRUE(body.at("error").is_null());
    EXPECT_EQ(body.at("metadata").at("webhook_version"), "1.0");
    EXPECT_EQ(body.at("metadata").at("timestamp"), "2026-01-02T03:04:08.500Z");
    EXPECT_EQ(body.at("job_metadata").at("order"), 17);
    const json::object& data = body.at("data").as_object();
    EXPECT_EQ(data.at("status"), "completed");
    EXPECT_EQ(data.at("success"), true);
    EXPECT_EQ(data.at("execution_time_seconds").to_number<double>(), 2.5);
    EXPECT_EQ(data.at("result"), body.at("result"));
}

TEST(WebhookBody, TellsOfAFailedJob) {
    const auto change =
        jobs::fail_job(running_job(), out_of_memory(), 7, kCreated + Millis(2000)).value();
    const json::object body = body_of(change);
    EXPECT_EQ(body.at("event"), "execution.failed");
    EXPECT_EQ(body.at("status"), "failed");
    EXPECT_EQ(body.at("execution_time").to_number<double>(), 1.0);
    EXPECT_TRUE(body.at("result").is_null());
    EXPECT_EQ(body.at("error").at("code"), "out_of_memory");
    EXPECT_EQ(body.at("error").at("category"), "resource_error");
    EXPECT_EQ(body.at("error").at("node_id"), "3");
    EXPECT_EQ(body.at("data").at("error"), body.at("error"));
    EXPECT_EQ(body.at("data").at("success"), false);
}

TEST(WebhookBody, AJobThatMissedItsDeadlineHasFailed) {
    const json::object body = body_of(jobs::expire(queued_job(), 2, kCreated + Millis(10)).value());
    EXPECT_EQ(body.at("event"), "execution.failed");
    EXPECT_EQ(body.at("status"), "failed");
    EXPECT_EQ(body.at("data").at("status"), "expired");
    EXPECT_EQ(body.at("error").at("category"), "timeout_error");
    EXPECT_TRUE(body.at("execution_time").is_null());
}

TEST(WebhookBody, TellsOfTheWayThere) {
    jobs::Spec spec;
    const json::object queued = body_of(jobs::make_job(JobId::make(kCreated), spec, kCreated));
    EXPECT_EQ(queued.at("event"), "execution.queued");
    EXPECT_EQ(queued.at("status"), "queued");
    EXPECT_TRUE(queued.at("completed_at").is_null());
    EXPECT_EQ(queued.at("data").at("status"), "queued");
    EXPECT_TRUE(queued.at("data").at("queue_position").is_null());
    EXPECT_TRUE(queued.at("data").at("estimated_wait_seconds").is_null());

    const json::object started = body_of(jobs::start(queued_job(), "gpu-1", 2, kCreated).value());
    EXPECT_EQ(started.at("event"), "execution.started");
    EXPECT_EQ(started.at("status"), "processing");
    EXPECT_EQ(started.at("data").at("gpu_assigned"), "gpu-1");
    EXPECT_EQ(started.at("data").at("status"), "processing");
    EXPECT_TRUE(started.at("data").at("estimated_duration_seconds").is_null());

    const auto retrying =
        body_of(jobs::retry_later(running_job(), out_of_memory(), kCreated, 3, kCreated).value());
    EXPECT_EQ(retrying.at("event"), "execution.warning");
    EXPECT_EQ(retrying.at("status"), "queued");
    EXPECT_TRUE(retrying.at("error").is_null()) << "the job has not failed";
    EXPECT_EQ(retrying.at("data").at("error").at("code"), "out_of_memory");

    const auto cancelled = body_of(jobs::request_cancel(queued_job(), 2, kCreated).value());
    EXPECT_EQ(cancelled.at("event"), "execution.cancelled");
    EXPECT_EQ(cancelled.at("status"), "cancelled");
    EXPECT_EQ(cancelled.at("data").at("success"), false);
}

TEST(WebhookBody, TellsOfProgress) {
    jobs::Progress progress;
    progress.value = 0.25;
    progress.current_node_class = "KSampler";
    jobs::Event event;
    event.type = jobs::EventType::progress;
    event.state = jobs::State::running;
    event.data = progress.to_json();
    const auto body = json::parse_object(webhook_body(running_job(), event)).value();
    EXPECT_EQ(body.at("event"), "execution.progress");
    EXPECT_EQ(body.at("data").at("progress_percent").to_number<double>(), 25.0);
    EXPECT_EQ(body.at("data").at("current_step"), "KSampler");
    EXPECT_TRUE(body.at("data").at("eta_seconds").is_null());
    EXPECT_EQ(body.at("data").at("status"), "processing");
}

TEST(WebhookBody, ShowsTheResultAsTheApiDoes) {
    jobs::Output output;
    output.name = "ä.png";
    const auto change =
        jobs::complete(running_job(), {output}, {}, 7, kCreated + Millis(3'508)).value();
    const ShowResult show_result =
        [](const jobs::Job& job, const std::vector<jobs::Output>& outputs, Time at) {
            return json::object{
                {"outputs", {outputs.at(0).name}},
                {"images", {job.id.to_string() + " " + to_rfc3339(at)}},
            };
        };
    const std::string text = webhook_body(change.job, change.event, show_result);
    EXPECT_NE(text.find("\"execution_time\":2.508,"), std::string::npos) << text;
    EXPECT_NE(text.find("\\u00e4.png"), std::string::npos) << text;
    const auto body = json::parse_object(text).value();
    EXPECT_EQ(body.at("result").at("outputs").at(0), "ä.png");
    EXPECT_EQ(
        body.at("result").at("images").at(0),
        "018bcfe5-6800-7000-8000-000000000001 2026-01-02T03:04:08.508Z"
    );
    EXPECT_EQ(body.at("data").at("result"), body.at("result"));
}

TEST(WebhookBody, TellsOfWarnings) {
    jobs::Spec spec;
    spec.warnings = {"the seed was out of range"};
    auto accepted = jobs::make_job(JobId::make(kCreated), spec, kCreated);
    const auto warning = jobs::warn(accepted, spec);
    ASSERT_TRUE(warning);
    EXPECT_EQ(warning->sequence, accepted.job.sequence);
    const auto body = json::parse_object(webhook_body(accepted.job, *warning)).value();
    EXPECT_EQ(body.at("event"), "execution.warning");
    EXPECT_EQ(body.at("status"), "queued");
    EXPECT_EQ(body.at("data").at("warnings").at(0), "the seed was out of range");
    spec.warnings.clear();
    EXPECT_FALSE(jobs::warn(accepted, spec));
}

class WebhookHeaders : public testing::Test {
protected:
    net::Headers make(const std::string& body = "{\"a\":1}") {
        return webhook_headers(
            webhook_, envelope_of(queued_job(), event_), body, Time(Millis(1'700'000'000'999))
        );
    }
    void SetUp() override {
        event_.sequence = 7;
        event_.type = jobs::EventType::completed;
        event_.at = Time(Millis(1'600'000'000'999));
    }
    jobs::Webhook webhook_;
    jobs::Event event_;
};

TEST_F(WebhookHeaders, NameTheMessage) {
    const auto headers = make();
    EXPECT_EQ(headers.get("Content-Type"), "application/json");
    EXPECT_TRUE(headers.get("User-Agent").starts_with("comfyd/"));
    EXPECT_EQ(headers.get("X-Execution-ID"), "018bcfe5-6800-7000-8000-000000000001");
    EXPECT_EQ(headers.get("X-Webhook-Event"), "execution.completed");
    EXPECT_EQ(headers.get("webhook-id"), "msg_018bcfe5-6800-7000-8000-000000000001_7");
    EXPECT_EQ(headers.get("webhook-timestamp"), "1700000000");
    EXPECT_EQ(headers.get("X-Webhook-ID"), "msg_018bcfe5-6800-7000-8000-000000000001_7");
    EXPECT_EQ(headers.get("X-Webhook-Timestamp"), "1600000000") << "of the event";
    EXPECT_FALSE(headers.contains("X-Signature"));
    EXPECT_FALSE(headers.contains("X-Webhook-Signature"));
    EXPECT_FALSE(headers.contains("webhook-signature"));
}

// The expected signatures were made with Python's hmac module.
TEST_F(WebhookHeaders, SignWithAPlainSecret) {
    webhook_.secret = "secret";
    const auto headers = make();
    EXPECT_EQ(
        headers.get("X-Signature"),
        "sha256=aa9e2e3575f5d7098b6caccd790888c36d5fdb63342a73bada2d6a51747a8494"
    );
    EXPECT_EQ(headers.get("X-Webhook-Signature"), headers.get("X-Signature"));
    EXPECT_EQ(headers.get("webhook-signature"), "v1,qtA4yMEH8Qg4dffwPVOSGwBJpfQTJrg9BPb9zWK7GeQ=");
}

TEST_F(WebhookHeaders, SignWithASecretOfStandardWebhooks) {
    webhook_.secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const auto headers = make();
    EXPECT_EQ(
        headers.get("X-Signature"),
        "sha256=45ec03b2b33403c8043a90de06bedad0827183927115fd7e448ef97eeb13c5be"
    );
    EXPECT_EQ(headers.get("webhook-signature"), "v1,bS3iVzGqm+L2gLIfCzATBem1/Z8FkQs8hZXlT7Ev4lk=");
}

TEST_F(WebhookHeaders, SignWithABrokenSecretOfStandardWebhooksAsItStands) {
    webhook_.secret = "whsec_not base64!";
    EXPECT_TRUE(make().contains("webhook-signature"));
}

TEST_F(WebhookHeaders, TakeTheClientsOwnWhereHarmless) {
    webhook_.secret = "secret";
    webhook_.headers = {
        {"Authorization", "Bearer token"},
        {"user-agent", "mine"},
        {"x-signature", "sha256=forged"},
        {"Webhook-Id", "forged"},
        {"WEBHOOK-SIGNATURE", "forged"},
        {"content-type", "text/plain"},
        {"Content-Length", "0"},
        {"Host", "internal"},
        {"Transfer-Encoding", "chunked"},
        {"X-Split", "a\r\nX-Evil: 1"},
        {"X-Zero", std::string("a\0b", 3)},
        {"Bad Name", "x"},
        {"X-Evil: 1\r\nX", "x"},
        {"", "x"},
    };
    const auto headers = make();
    EXPECT_EQ(headers.get("Authorization"), "Bearer token");
    EXPECT_EQ(headers.get("User-Agent"), "mine");
    EXPECT_EQ(headers.get("Content-Type"), "application/json");
    EXPECT_NE(headers.get("X-Signature"), "sha256=forged");
    EXPECT_TRUE(headers.get("webhook-id").starts_with("msg_"));
    EXPECT_TRUE(headers.get("webhook-signature").starts_with("v1,"));
    EXPECT_EQ(headers.all().size(), 12U) << "nothing else came through";
}

TEST(WebhookUrl, OnlyTheWebMayBeCalled) {
    for (const char* url :
         {"https://example.com/hook",
          "http://93.184.216.34:8080/x?y=1",
          "https://[2606:2800:220:1::1]/"}) {
        EXPECT_TRUE(check_webhook_url(url, false)) << url;
    }
    for (const char* url :
         {"",
          "example.com",
          "ftp://example.com/",
          "ws://example.com/",
          "http://user:pass@example.com/",
          "file:///etc/passwd"}) {
        EXPECT_EQ(check_webhook_url(url, true).error().code, Code::invalid_argument) << url;
    }
    EXPECT_EQ(
        check_webhook_url("http://example.com/" + std::string(3000, 'x'), true).error().code,
        Code::invalid_argument
    );
}

TEST(WebhookUrl, PrivateAddressesNeedPermission) {
    for (const char* url :
         {"http://127.0.0.1/",
          "http://10.1.2.3/",
          "http://169.254.169.254/latest/meta-data",
          "http://[::1]/",
          "http://[::ffff:127.0.0.1]/",
          "http://localhost:8080/",
          "http://LOCALHOST./",
          "http://a.localhost/"}) {
        const auto checked = check_webhook_url(url, false);
        ASSERT_FALSE(checked) << url;
        EXPECT_EQ(checked.error().code, Code::address_refused) << url;
        EXPECT_TRUE(check_webhook_url(url, true)) << url;
    }
}

}  // namespace
}  // namespace comfyd::notify
