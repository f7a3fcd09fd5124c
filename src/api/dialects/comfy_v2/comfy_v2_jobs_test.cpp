// Jobs of the Comfy API v2, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::kWorkflow;
using test::parse;
using test::ScriptedWorker;
using test::self_of;
using test::submission;
using test::submit_job;
using test::TestApi;
using test::text;
using testing::HasSubstr;

TEST(ComfyV2Jobs, SubmitReadAndListAJob) {
    TestApi api;
    const auto created =
        api.post("/api/v2/jobs", submission(R"(,"metadata":{"a":1},"priority":8)"));
    ASSERT_EQ(created.status, 201) << created.body;
    const json::object job = parse(created.body);
    EXPECT_EQ(created.headers.get("Location"), self_of(job));
    EXPECT_EQ(job.at("status"), "queued");
    EXPECT_EQ(job.at("queue_position"), 1);
    EXPECT_EQ(job.at("priority"), 8);
    EXPECT_EQ(job.at("metadata"), parse(R"({"a":1})"));
    const auto read = api.get(self_of(job));
    EXPECT_EQ(read.status, 200);
    EXPECT_EQ(parse(read.body).at("id"), job.at("id"));
    const json::object workflow = parse(api.get(self_of(job) + "/workflow").body);
    EXPECT_EQ(workflow.at("format"), "api");
    EXPECT_EQ(workflow.at("workflow"), parse(kWorkflow));
    const json::object list = parse(api.get("/api/v2/jobs").body);
    EXPECT_EQ(list.at("jobs").as_array().size(), 1U);
    EXPECT_TRUE(list.at("next_cursor").is_null());
}

TEST(ComfyV2Jobs, ListsPageByPage) {
    TestApi api;
    for (int i = 0; i < 3; ++i) {
        api.clock.advance(Millis(1));
        submit_job(api, R"(,"workflow_id":"w")");
    }
    const json::object first = parse(api.get("/api/v2/jobs?limit=2&status=queued,running").body);
    EXPECT_EQ(first.at("jobs").as_array().size(), 2U);
    const json::object second =
        parse(api.get("/api/v2/jobs?limit=2&cursor=" + text(first, "next_cursor")).body);
    EXPECT_EQ(second.at("jobs").as_array().size(), 1U);
    EXPECT_TRUE(parse(api.get("/api/v2/jobs?status=failed").body).at("jobs").as_array().empty());
    EXPECT_TRUE(parse(api.get("/api/v2/jobs?status=canceling").body).at("jobs").as_array().empty());
    api.get(
        "/api/v2/"
        "jobs?workflow_id=w&created_after=2030-01-01T00:00:00Z&created_before=2031-01-01T00:00:00Z"
    );
    const jobs::ListQuery query = api.ledger.query();
    EXPECT_EQ(query.workflow_id, "w");
    EXPECT_EQ(query.created_after, parse_rfc3339("2030-01-01T00:00:00Z"));
    EXPECT_EQ(query.created_before, parse_rfc3339("2031-01-01T00:00:00Z"));
    EXPECT_EQ(query.tenant, "local");
}

TEST(ComfyV2Jobs, BadListQueriesNameTheField) {
    TestApi api;
    for (const char* query :
         {"limit=0", "limit=1001", "limit=x", "cursor=x", "status=done", "created_after=yesterday"
         }) {
        const auto response = api.get("/api/v2/jobs?" + std::string(query));
        EXPECT_EQ(response.status, 422) << query;
        const std::string field(query, std::string_view(query).find('='));
        EXPECT_EQ(parse(response.body).at("error").at("details").at("field"), json::value(field));
    }
}

TEST(ComfyV2Jobs, UnknownJobsAreNotFound) {
    TestApi api;
    const std::string unknown = JobId::make(api.clock.now()).to_string();
    for (const std::string& id : {unknown, std::string("nonsense")}) {
        for (const char* below : {"", "/workflow", "/events"}) {
            const auto response = api.get("/api/v2/jobs/" + id + below);
            EXPECT_EQ(response.status, 404) << below;
            EXPECT_EQ(error_code(response), "not_found");
        }
        EXPECT_EQ(api.post("/api/v2/jobs/" + id + "/cancel", "").status, 404);
        EXPECT_EQ(api.post("/api/v2/jobs/" + id + "/retry", "").status, 404);
    }
}

TEST(ComfyV2Jobs, JobsOfOtherTenantsAreNotFound) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("acme-key")}, {"b", "other", auth::hash_key("other-key")}
    };
    TestApi api(std::move(arrangement));
    const auto created =
        api.post("/api/v2/jobs", submission(), header("Authorization", "Bearer acme-key"));
    ASSERT_EQ(created.status, 201);
    const std::string self = self_of(parse(created.body));
    EXPECT_EQ(api.get(self, header("Authorization", "Bearer acme-key")).status, 200);
    EXPECT_EQ(api.get(self, header("Authorization", "Bearer other-key")).status, 404);
    EXPECT_EQ(api.get(self).status, 401);
    EXPECT_EQ(error_code(api.get(self)), "unauthorized");
}

TEST(ComfyV2Jobs, AnIdempotencyKeyIsGoodForOneRequest) {
    TestApi api;
    const auto first = api.post("/api/v2/jobs", submission(), header("Idempotency-Key", "k-1"));
    ASSERT_EQ(first.status, 201);
    for (const char* more : {"", R"(,"priority":9)"}) {
        // The quoted form is the same key.
        const auto again =
            api.post("/api/v2/jobs", submission(more), header("Idempotency-Key", "\"k-1\""));
        EXPECT_EQ(again.status, 422);
        EXPECT_EQ(error_code(again), "idempotency_key_reuse");
        EXPECT_EQ(
            parse(again.body).at("error").at("details").at("job_id"), parse(first.body).at("id")
        );
    }
    // A refused request does not use its key up.
    EXPECT_EQ(api.post("/api/v2/jobs", "{}", header("Idempotency-Key", "k-2")).status, 422);
    EXPECT_EQ(api.post("/api/v2/jobs", submission(), header("Idempotency-Key", "k-2")).status, 201);
}

TEST(ComfyV2Jobs, SecretsTravelButAreNotShown) {
    TestApi api;
    const json::object job = submit_job(
        api, R"(,"extra_data":{"api_key_comfy_org":"shh","extra_pnginfo":{"workflow":{}}})"
    );
    const jobs::Spec spec = api.ledger.spec(*JobId::parse(text(job, "id")));
    EXPECT_TRUE(spec.extra_data.contains("extra_pnginfo"));
    EXPECT_FALSE(spec.extra_data.contains("api_key_comfy_org"));
    EXPECT_THAT(api.get(self_of(job)).body, testing::Not(HasSubstr("shh")));
    EXPECT_THAT(api.get(self_of(job) + "/workflow").body, testing::Not(HasSubstr("shh")));
}

TEST(ComfyV2Jobs, InputsAreSetInTheWorkflow) {
    TestApi api;
    const json::object job = submit_job(api, R"(,"inputs":{"1.width":64})");
    const json::object workflow = parse(api.get(self_of(job) + "/workflow").body);
    EXPECT_EQ(workflow.at("workflow").at("1").at("inputs").at("width"), 64);
    EXPECT_EQ(api.post("/api/v2/jobs", submission(R"(,"inputs":{"7.width":64})")).status, 422);
}

TEST(ComfyV2Jobs, CancelsAndRetriesAQueuedJob) {
    TestApi api;
    const json::object job = submit_job(api);
    EXPECT_EQ(api.post(self_of(job) + "/retry", "").status, 409);
    const auto cancelled = api.post(self_of(job) + "/cancel", "");
    EXPECT_EQ(cancelled.status, 200);
    EXPECT_EQ(parse(cancelled.body).at("status"), "canceled");
    EXPECT_EQ(api.post(self_of(job) + "/cancel", "").status, 200);
    const auto retried = api.post(self_of(job) + "/retry", "");
    EXPECT_EQ(retried.status, 200);
    EXPECT_EQ(parse(retried.body).at("status"), "queued");
}

TEST(ComfyV2Jobs, CancelsARunningJob) {
    TestApi api;
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    const json::object job = submit_job(api);
    const json::object running = api.wait_for_status(self_of(job), "running");
    EXPECT_EQ(running.at("progress").at("value"), 0.5);
    EXPECT_EQ(api.post(self_of(job) + "/cancel", "").status, 200);
    const json::object ended = api.wait_for_status(self_of(job), "canceled");
    EXPECT_TRUE(ended.at("error").is_null());
}

TEST(ComfyV2Jobs, AFailedJobSaysWhere) {
    TestApi api;
    api.open_worker(ScriptedWorker::Script::fail);
    const json::object job = submit_job(api);
    const json::object failed = api.wait_for_status(self_of(job), "failed");
    EXPECT_EQ(failed.at("error").at("code"), "node_execution_error");
    EXPECT_EQ(failed.at("error").at("class_type"), "KSampler");
}

TEST(ComfyV2Jobs, AFullQueueIs429) {
    Arrangement arrangement;
    arrangement.jobs.queue_max = 1;
    TestApi api(std::move(arrangement));
    submit_job(api);
    const auto refused = api.post("/api/v2/jobs", submission());
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(error_code(refused), "queue_full");
    EXPECT_FALSE(refused.headers.get("Retry-After").empty());
}

}  // namespace
}  // namespace comfyd::api
