// Answers about ended jobs are sent again as long as they are true, and no longer.
#include "api/answer_shelf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::header;
using test::parse;
using test::ScriptedWorker;
using test::self_of;
using test::submission;
using test::submit_job;
using test::TestApi;
using test::text;

constexpr Millis kAMoment = std::chrono::seconds(10);
constexpr Millis kTooLong = std::chrono::minutes(2);

// A job that ended with an output, at the address where one dialect shows it. A link to the output
// tells when it was encoded.
class KeptAnswers : public testing::TestWithParam<const char*> {
protected:
    std::string path_of(const json::object& job) const { return GetParam() + text(job, "id"); }

    std::string run(ScriptedWorker::Script script, const std::string& more = "") {
        api_.open_worker(script);
        const json::object job = submit_job(api_, more);
        const bool fails = script == ScriptedWorker::Script::fail;
        api_.wait_for_status(self_of(job), fails ? "failed" : "succeeded");
        return path_of(job);
    }
    void make_outputs() {
        jobs::Output& output = api_.fleet.worker->output;
        output.asset = AssetId::make(api_.clock.now());
        output.name = "a.png";
        output.type = "image";
        output.content_type = "image/png";
    }
    std::string get(const std::string& path) {
        const auto response = api_.get(path);
        EXPECT_EQ(response.status, 200) << response.body;
        return response.body;
    }

    TestApi api_;
};
INSTANTIATE_TEST_SUITE_P(
    Dialects,
    KeptAnswers,
    testing::Values(
        "/api/v2/jobs/",
        "/v1/workflows/execution/",
        "/v2/workflows/execution/",
        "/comfyui/execution/",
        "/api/v1/tasks/"
    ),
    [](const auto& of) {
        std::string name(of.param);
        std::erase_if(name, [](char c) { return c == '/'; });
        return name;
    }
);

TEST_P(KeptAnswers, AreSentAgainUntilTheirLinksAreOld) {
    make_outputs();
    const std::string path = run(ScriptedWorker::Script::succeed);
    const std::string first = get(path);
    ASSERT_THAT(first, testing::HasSubstr("expires="));
    api_.clock.advance(kAMoment);
    EXPECT_EQ(get(path), first);
    EXPECT_GT(api_.services.answers->bytes(), first.size());
    api_.clock.advance(kTooLong);
    EXPECT_NE(get(path), first);
}

TEST_P(KeptAnswers, AreNotSentOfAJobThatWasBroughtBack) {
    const std::string path = run(ScriptedWorker::Script::fail);
    const std::string first = get(path);
    EXPECT_EQ(get(path), first);
    api_.on_core([this] { api_.fleet.worker->open = false; });
    const std::string id = path.substr(path.rfind('/') + 1);
    ASSERT_EQ(api_.post("/api/v2/jobs/" + id + "/retry", "").status, 200);
    EXPECT_NE(get(path), first);
    EXPECT_EQ(parse(get("/api/v2/jobs/" + id)).at("status"), "queued");
}

TEST_P(KeptAnswers, AreNotSentOfAJobThatIsGone) {
    const std::string path = run(ScriptedWorker::Script::succeed);
    get(path);
    const std::string id = path.substr(path.rfind('/') + 1);
    ASSERT_EQ(api_.send("DELETE", "/v2/workflows/execution/" + id).status, 200);
    EXPECT_EQ(api_.get(path).status, 404);
}

TEST_P(KeptAnswers, HaveLinksToTheHostThatWasAsked) {
    make_outputs();
    const std::string path = run(ScriptedWorker::Script::succeed);
    const std::string port = std::to_string(api_.port);
    for (int round = 0; round < 2; ++round) {
        for (const std::string& host : {"localhost:" + port, "127.0.0.1:" + port}) {
            const auto response = api_.get("http://" + host + path);
            EXPECT_THAT(response.body, testing::HasSubstr("http://" + host + "/")) << round;
        }
    }
}

TEST_P(KeptAnswers, AreNotSentOnceAnOutputIsExpired) {
    make_outputs();
    api_.fleet.worker->output.expires_at = api_.clock.now() + 2 * kAMoment;
    const std::string path = run(ScriptedWorker::Script::succeed);
    const std::string first = get(path);
    api_.clock.advance(kAMoment);
    EXPECT_EQ(get(path), first);
    api_.clock.advance(kAMoment);
    EXPECT_NE(get(path), first);
}

TEST_P(KeptAnswers, AreNotKeptWhereTheOutputsAreOnTheirWayElsewhere) {
    make_outputs();
    api_.fleet.worker->output.store = "far";
    run(ScriptedWorker::Script::succeed);
    EXPECT_EQ(api_.services.answers->bytes(), 0U);
}

TEST_P(KeptAnswers, AreNotSentOfOneThatRuns) {
    const std::string path = path_of(submit_job(api_));
    get(path);
    EXPECT_EQ(api_.services.answers->bytes(), 0U);
}

TEST(KeptAnswer, TellsWhenTheWebhookHasArrived) {
    TestApi api;
    api.open_worker();
    const json::object job = submit_job(
        api,
        R"(,"webhook_config":{"url":"https://example.com/hook","events":["execution.completed"]})"
    );
    api.wait_for_status(self_of(job), "succeeded");
    const std::string path = "/v2/workflows/execution/" + text(job, "id");
    const bool is_told = api.ledger.spec(*JobId::parse(text(job, "id"))).webhook.has_value();
    ASSERT_TRUE(is_told);
    EXPECT_EQ(parse(api.get(path).body).at("webhook_delivered"), false);
    EXPECT_EQ(parse(api.get(path).body).at("webhook_delivered"), false);
    api.ledger.webhooks_arrived = true;
    EXPECT_EQ(parse(api.get(path).body).at("webhook_delivered"), true);
    EXPECT_EQ(parse(api.get(path).body).at("webhook_delivered"), true);
    api.ledger.webhooks_arrived = false;  // it is sent once more
    EXPECT_EQ(parse(api.get(path).body).at("webhook_delivered"), false);
}

TEST(KeptAnswer, HoldsWithoutAskingWhileNothingIsWritten) {
    TestApi api;
    std::atomic<std::uint64_t> changes{1};
    api.services.answers =
        std::make_shared<AnswerShelf>([&changes] { return std::optional(changes.load()); });
    api.open_worker();
    const json::object job = submit_job(
        api,
        R"(,"webhook_config":{"url":"https://example.com/hook","events":["execution.completed"]})"
    );
    api.wait_for_status(self_of(job), "succeeded");
    const std::string path = "/v2/workflows/execution/" + text(job, "id");
    const auto is_delivered = [&] { return parse(api.get(path).body).at("webhook_delivered"); };
    EXPECT_EQ(is_delivered(), false);
    for (bool arrived : {true, false, true}) {
        api.ledger.webhooks_arrived = arrived;
        EXPECT_EQ(is_delivered(), !arrived) << "nobody said that anything was written";
        ++changes;
        EXPECT_EQ(is_delivered(), arrived);
        EXPECT_EQ(is_delivered(), arrived);
    }
    ++changes;
    EXPECT_EQ(is_delivered(), true) << "something else was written";
}

TEST(KeptAnswer, IsOfItsTenantAlone) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("acme-key")}, {"b", "other", auth::hash_key("other-key")}
    };
    TestApi api(std::move(arrangement));
    const auto acme = header("Authorization", "Bearer acme-key");
    const auto created = api.post("/api/v2/jobs", submission(), acme);
    ASSERT_EQ(created.status, 201);
    const std::string self = self_of(parse(created.body));
    api.post(self + "/cancel", "", acme);
    const auto first = api.get(self, acme);
    ASSERT_EQ(parse(first.body).at("status"), "canceled");
    ASSERT_GT(api.services.answers->bytes(), 0U);
    EXPECT_EQ(api.get(self, header("Authorization", "Bearer other-key")).status, 404);
    EXPECT_EQ(api.get(self).status, 401);
    EXPECT_EQ(api.get(self, acme).body, first.body);
}

AnswerShelf::Answer answer_of(std::size_t bytes) {
    return {.tenant = "acme", .revision = 3, .body = std::string(bytes, 'x')};
}

TEST(AnswerShelf, HoldsNoMoreThanItMay) {
    AnswerShelf shelf;
    const Time now = from_unix_ms(1'900'000'000'000);
    const JobId first = JobId::make(now);
    shelf.put(first, "form", answer_of(1000));
    ASSERT_TRUE(shelf.find(first, "form"));
    EXPECT_FALSE(shelf.find(first, "other form"));
    JobId latest;
    for (int i = 0; i < 20'000; ++i) {
        latest = JobId::make(now);
        shelf.put(latest, "form", answer_of(static_cast<std::size_t>(i % 3) * 1000));
        shelf.put(latest, "form", answer_of(500));
        ASSERT_LE(shelf.bytes(), AnswerShelf::kBytesMax);
    }
    EXPECT_FALSE(shelf.find(first, "form"));
    EXPECT_EQ(shelf.find(latest, "form")->body.size(), 500U);
    EXPECT_GT(shelf.bytes(), AnswerShelf::kBytesMax / 2);
    shelf.put(first, "form", answer_of(AnswerShelf::kAnswerBytesMax + 1));
    EXPECT_FALSE(shelf.find(first, "form"));
}

TEST(AnswerShelf, AnAnswerIsOfTheStampThatItWasMadeOf) {
    AnswerShelf::Answer answer = answer_of(1);
    EXPECT_TRUE(answer.is_of({"acme", 3, false}));
    EXPECT_TRUE(answer.is_of({"acme", 3, true}));
    EXPECT_FALSE(answer.is_of({"acme", 4, false}));
    EXPECT_FALSE(answer.is_of({"other", 3, false}));
    answer.webhook_delivered = false;
    EXPECT_TRUE(answer.is_of({"acme", 3, false}));
    EXPECT_FALSE(answer.is_of({"acme", 3, true}));
}

}  // namespace
}  // namespace comfyd::api
