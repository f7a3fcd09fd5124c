#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2_shapes.hpp"
#include "api/test_support.hpp"
#include "assets/blake3.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::parse;
using test::ScriptedWorker;
using test::TestApi;
using testing::HasSubstr;

constexpr const char* kWorkflow = R"({"1":{"class_type":"EmptyImage","inputs":{"width":8}},)"
                                  R"("2":{"class_type":"SaveImage","inputs":{"images":["1",0]}}})";

std::string submission(const std::string& more = "") {
    return "{\"workflow\":" + std::string(kWorkflow) + more + "}";
}

std::string text(const json::object& in, std::string_view key) {
    return std::string(in.at(key).as_string());
}

// Submits and returns the job.
json::object submit_job(TestApi& api, const std::string& more = "") {
    const auto response = api.post("/api/v2/jobs", submission(more));
    EXPECT_EQ(response.status, 201) << response.body;
    return parse(response.body);
}

std::string self_of(const json::object& job) {
    return std::string(job.at("urls").at("self").as_string());
}

// --- How jobs are shown ---

class Shapes : public testing::Test {
protected:
    json::object encode() { return v2::encode_job(view, v2::Scope{request, api.services}); }

    TestApi api;
    net::Request request = [] {
        net::Request made;
        made.headers.set("Host", "comfyd.example:8080");
        return made;
    }();
    jobs::View view = [this] {
        jobs::View made;
        made.job.id = JobId::make(api.clock.now());
        made.job.created_at = api.clock.now();
        return made;
    }();
};

TEST_F(Shapes, EveryStateHasItsStatus) {
    using enum jobs::State;
    const std::vector<std::pair<jobs::State, std::string>> expected{
        {queued, "queued"},
        {retry_waiting, "queued"},
        {running, "running"},
        {completed, "succeeded"},
        {failed, "failed"},
        {cancelled, "canceled"},
        {expired, "expired"},
    };
    for (const auto& [state, status] : expected) {
        view.job.state = state;
        EXPECT_EQ(encode().at("status"), json::value(status));
        const auto states = v2::states_of(status);
        EXPECT_NE(std::find(states.begin(), states.end(), state), states.end());
    }
    view.job.state = running;
    view.job.cancel_requested = true;
    EXPECT_EQ(encode().at("status"), "canceling");
    EXPECT_TRUE(v2::states_of("done").empty());
}

TEST_F(Shapes, AQueuedJobHasEveryRequiredMember) {
    view.queue_position = 3;
    view.job.state = jobs::State::retry_waiting;
    view.job.started_at = api.clock.now();
    view.job.failure = jobs::Failure{};
    const json::object job = encode();
    for (const char* null_member : {"started_at", "completed_at", "progress", "error"}) {
        EXPECT_TRUE(job.at(null_member).is_null()) << null_member;
    }
    EXPECT_EQ(job.at("queue_position"), 3);
    EXPECT_TRUE(job.at("outputs").as_array().empty());
    EXPECT_TRUE(job.at("metrics").at("queue_ms").is_null());
    EXPECT_TRUE(job.at("metrics").at("execution_ms").is_null());
    const std::string path = "/api/v2/jobs/" + view.job.id.to_string();
    EXPECT_EQ(job.at("urls").at("self"), json::value(path));
    EXPECT_EQ(job.at("urls").at("events"), json::value(path + "/events"));
    EXPECT_EQ(job.at("urls").at("cancel"), json::value(path + "/cancel"));
    EXPECT_EQ(
        job.at("expires_at"),
        json::value(to_rfc3339(view.job.created_at + api.services.options.retention))
    );
}

TEST_F(Shapes, ARunningJobShowsItsProgress) {
    view.job.state = jobs::State::running;
    view.job.started_at = view.job.created_at + Millis(250);
    view.progress = jobs::Progress{};
    view.progress->value = 0.25;
    view.progress->current_node = "3";
    const json::object job = encode();
    EXPECT_EQ(job.at("progress").at("value"), 0.25);
    EXPECT_EQ(job.at("progress").at("current_node"), "3");
    EXPECT_TRUE(job.at("progress").at("step").is_null());
    EXPECT_EQ(job.at("metrics").at("queue_ms"), 250);
}

TEST_F(Shapes, ACompletedJobLinksItsOutputs) {
    view.job.state = jobs::State::completed;
    view.job.started_at = view.job.created_at + Millis(10);
    view.job.finished_at = view.job.created_at + Millis(1010);
    jobs::Output output;
    output.asset = AssetId::make(api.clock.now());
    output.node_id = "9";
    output.name = "a.png";
    output.type = "image";
    output.content_type = "image/png";
    output.size_bytes = 12;
    view.job.outputs.push_back(output);
    const json::object job = encode();
    const json::object& shown = job.at("outputs").as_array().at(0).as_object();
    EXPECT_THAT(
        text(shown, "url"),
        HasSubstr(
            "http://comfyd.example:8080/api/v2/assets/" + output.asset.to_string() + "/content?"
        )
    );
    EXPECT_EQ(shown.at("job_id"), json::value(view.job.id.to_string()));
    EXPECT_EQ(shown.at("size_bytes"), 12);
    EXPECT_TRUE(shown.at("hash").is_null());
    EXPECT_EQ(job.at("metrics").at("execution_ms"), 1000);
}

TEST_F(Shapes, AFailedJobSaysWhy) {
    view.job.state = jobs::State::failed;
    view.job.failure = jobs::Failure{};
    view.job.failure->code = Code::out_of_memory;
    view.job.failure->message = "8 GB were not enough";
    view.job.failure->node_id = "3";
    const json::object job = encode();
    EXPECT_EQ(job.at("error").at("code"), "out_of_memory");
    EXPECT_EQ(job.at("error").at("node_id"), "3");
    EXPECT_TRUE(job.at("error").at("traceback").is_null());
    EXPECT_EQ(job.at("error").at("retryable"), true);
}

TEST_F(Shapes, LinksKeepThePrefixOfThePublicUrl) {
    api.services.options.public_url = "https://gpu.example/comfy/";
    EXPECT_EQ(
        encode().at("urls").at("self"), json::value("/comfy/api/v2/jobs/" + view.job.id.to_string())
    );
}

TEST_F(Shapes, EventsHaveFrames) {
    const v2::Scope scope{request, api.services};
    jobs::Event event;
    event.job = view.job.id;
    event.sequence = 5;
    event.type = jobs::EventType::cancelling;
    event.state = jobs::State::running;
    EXPECT_EQ(
        v2::event_frame(event, scope),
        "id: 5\nevent: status\ndata: {\"status\":\"canceling\",\"queue_position\":null}\n\n"
    );
    event.type = jobs::EventType::retrying;
    event.state = jobs::State::retry_waiting;
    event.data = {{"error", jobs::Failure{}.to_json()}};
    EXPECT_THAT(*v2::event_frame(event, scope), HasSubstr("{\"status\":\"queued\""));
    event.type = jobs::EventType::failed;
    event.state = jobs::State::failed;
    EXPECT_THAT(*v2::event_frame(event, scope), HasSubstr("\"error\":{\"code\":\"internal\""));
    event.type = jobs::EventType::preview;
    event.preview = "abc";
    event.preview_type = "image/png";
    EXPECT_EQ(
        v2::event_frame(event, scope),
        "event: preview\ndata: {\"node_id\":\"\",\"content_type\":\"image/png\","
        "\"data_base64\":\"YWJj\"}\n\n"
    );
    event.type = jobs::EventType::output;
    event.data = {};
    EXPECT_EQ(v2::event_frame(event, scope), std::nullopt);
}

// --- Jobs over HTTP ---

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

// --- Events ---

std::string request_text(const std::string& path, const std::string& headers = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

TEST(ComfyV2Events, StreamFromTheSnapshotToTheEnd) {
    TestApi api;
    const json::object job = submit_job(api);
    net::test::RawClient client(api.port);
    client.send(
        request_text(self_of(job) + "/events", "Accept: text/event-stream\r\nConnection: close\r\n")
    );
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("200 OK"));
    EXPECT_THAT(head, HasSubstr("text/event-stream"));
    const std::string snapshot = client.read_until("\n\n");
    EXPECT_THAT(
        snapshot,
        HasSubstr("id: 1\nevent: status\ndata: {\"status\":\"queued\",\"queue_position\":1}")
    );
    api.open_worker();
    const std::string rest = client.read_all();
    const auto running = rest.find("\"status\":\"running\"");
    const auto output = rest.find("event: output");
    const auto succeeded = rest.find("\"status\":\"succeeded\"");
    EXPECT_LT(running, output);
    EXPECT_LT(output, succeeded);
    ASSERT_NE(succeeded, std::string::npos);
    api.wait_until_no_stream();
}

TEST(ComfyV2Events, AnEndedJobIsTheFinalStatusAndNoMore) {
    TestApi api;
    api.open_worker();
    const json::object job = submit_job(api);
    api.wait_for_status(self_of(job), "succeeded");
    const auto response = api.get(self_of(job) + "/events");
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, HasSubstr("event: status\ndata: {\"status\":\"succeeded\""));
    EXPECT_THAT(response.body, HasSubstr("\"outputs\":[{"));
    EXPECT_EQ(api.send("HEAD", self_of(job) + "/events").status, 200);
}

TEST(ComfyV2Events, ResumeAfterTheLastSeenEvent) {
    TestApi api;
    api.open_worker();
    const json::object job = submit_job(api);
    api.wait_for_status(self_of(job), "succeeded");
    const std::string events = self_of(job) + "/events";
    const auto all = api.get(events + "?last_event_id=0");
    EXPECT_THAT(all.body, HasSubstr("id: 1\nevent: status\ndata: {\"status\":\"queued\""));
    EXPECT_THAT(all.body, HasSubstr("\"status\":\"running\""));
    EXPECT_THAT(all.body, HasSubstr("\"status\":\"succeeded\""));
    const auto later = api.get(events, header("Last-Event-ID", "1"));
    EXPECT_THAT(later.body, testing::Not(HasSubstr("\"status\":\"queued\"")));
    EXPECT_THAT(later.body, HasSubstr("\"status\":\"running\""));
    EXPECT_EQ(api.get(events, header("Last-Event-ID", "99999999")).status, 204);
    EXPECT_EQ(api.get(events, header("Last-Event-ID", "x")).status, 422);
}

TEST(ComfyV2Events, TheEndOfAnEarlierLifeIsNotTheEnd) {
    TestApi api;
    const json::object job = submit_job(api);
    api.post(self_of(job) + "/cancel", "");
    api.post(self_of(job) + "/retry", "");
    net::test::RawClient client(api.port);
    client.send(request_text(self_of(job) + "/events?last_event_id=0", "Connection: close\r\n"));
    EXPECT_FALSE(client.read_until("\"status\":\"canceled\"").empty());
    EXPECT_FALSE(client.read_until("\"status\":\"queued\"").empty());
    api.open_worker();
    EXPECT_FALSE(client.read_until("\"status\":\"succeeded\"").empty());
    client.read_all();
}

TEST(ComfyV2Events, SilentStreamsHaveAHeartbeat) {
    Arrangement arrangement;
    arrangement.options.heartbeat = Millis(5);
    TestApi api(std::move(arrangement));
    const json::object job = submit_job(api);
    net::test::RawClient client(api.port);
    client.send(request_text(self_of(job) + "/events"));
    EXPECT_FALSE(client.read_until(": still here\n\n").empty());
    EXPECT_FALSE(client.read_until(": still here\n\n").empty());
}

TEST(ComfyV2Events, AStreamIsFreedWhenItsClientLeaves) {
    Arrangement arrangement;
    arrangement.options.streams_max = 1;
    TestApi api(std::move(arrangement));
    const json::object job = submit_job(api);
    {
        net::test::RawClient client(api.port);
        client.send(request_text(self_of(job) + "/events"));
        client.read_until("\n\n");
        const auto refused = api.get(self_of(job) + "/events");
        EXPECT_EQ(refused.status, 429);
        EXPECT_EQ(error_code(refused), "too_many_streams");
    }
    api.wait_until_no_stream();
}

// What a stream with these options says until its job, which runs, is cancelled.
std::string events_until_cancel(
    const std::string& query, const std::string& headers, bool wait_for_preview
) {
    TestApi api;
    const json::object job = submit_job(api);
    net::test::RawClient client(api.port);
    client.send(request_text(self_of(job) + "/events" + query, headers + "Connection: close\r\n"));
    client.read_until("\n\n");
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    std::string said = client.read_until(wait_for_preview ? "event: preview" : "event: progress");
    api.post(self_of(job) + "/cancel", "");
    return said + client.read_all();
}

TEST(ComfyV2Events, PreviewsComeWhenAskedFor) {
    EXPECT_THAT(events_until_cancel("?previews=1", "", true), HasSubstr("event: preview"));
    EXPECT_THAT(
        events_until_cancel("", "Accept: text/event-stream\r\n", true), HasSubstr("event: preview")
    );
    EXPECT_THAT(events_until_cancel("", "", false), testing::Not(HasSubstr("event: preview")));
    EXPECT_THAT(
        events_until_cancel("?previews=0", "Accept: text/event-stream\r\n", false),
        testing::Not(HasSubstr("event: preview"))
    );
}

// --- Assets ---

const std::string kPicture = "\x89PNG\r\n\x1a\n and so on";

net::FormPart field(std::string name, std::string value) {
    return {std::move(name), std::nullopt, "", std::move(value)};
}

net::FormPart file(std::string data, std::string filename = "cat.png") {
    return {"file", std::move(filename), "image/png", std::move(data)};
}

json::object upload(TestApi& api, const std::vector<net::FormPart>& parts) {
    const auto response = api.upload(parts);
    EXPECT_EQ(response.status, 201) << response.body;
    return parse(response.body);
}

TEST(ComfyV2Assets, UploadReadDownloadAndDelete) {
    TestApi api;
    const json::object asset = upload(
        api,
        {field("content_type", "image/png"),
         field("file_path", "in/cat.png"),
         field("expected_hash", assets::blake3_name(kPicture)),
         field("tags", "input"),
         field("tags", "cat"),
         field("expires_in", "60"),
         file(kPicture)}
    );
    EXPECT_EQ(text(asset, "hash"), assets::blake3_name(kPicture));
    EXPECT_EQ(asset.at("size_bytes"), kPicture.size());
    EXPECT_EQ(asset.at("file_path"), "in/cat.png");
    EXPECT_EQ(asset.at("created_new"), true);
    EXPECT_EQ(asset.at("tags").as_array().size(), 2U);
    EXPECT_EQ(text(asset, "expires_at"), to_rfc3339(api.clock.now() + std::chrono::seconds(60)));
    EXPECT_TRUE(asset.at("job_id").is_null());
    const std::string path = "/api/v2/assets/" + text(asset, "id");
    EXPECT_EQ(parse(api.get(path).body).at("id"), asset.at("id"));
    const auto content = api.get(text(asset, "url"));
    EXPECT_EQ(content.status, 200);
    EXPECT_EQ(content.body, kPicture);
    EXPECT_EQ(content.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(content.headers.get("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(
        content.headers.get("Content-Disposition"),
        "inline; filename=\"cat.png\"; filename*=UTF-8''cat.png"
    );
    EXPECT_EQ(api.send("DELETE", path).status, 204);
    EXPECT_EQ(api.send("DELETE", path).status, 404);
    EXPECT_EQ(api.get(path).status, 404);
}

TEST(ComfyV2Assets, TheFileMayComeFirstAndAlone) {
    TestApi api;
    const json::object asset = upload(api, {file(kPicture, "C:\\pictures\\cat.png")});
    EXPECT_EQ(asset.at("file_path"), "cat.png");
    EXPECT_EQ(asset.at("content_type"), "image/png");
    const json::object second = upload(api, {file("other"), field("file_path", "late.txt")});
    EXPECT_EQ(second.at("file_path"), "late.txt");
}

TEST(ComfyV2Assets, EqualBytesAreStoredOnce) {
    TestApi api;
    const json::object first = upload(api, {file(kPicture)});
    const auto again = api.upload({file(kPicture)});
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(parse(again.body).at("created_new"), false);
    EXPECT_NE(parse(again.body).at("id"), first.at("id"));
}

TEST(ComfyV2Assets, KnownBytesNeedNoUpload) {
    TestApi api;
    const std::string hash = assets::blake3_name(kPicture);
    const std::string by_hash = "/api/v2/assets/by-hash/" + net::percent_encode(hash);
    EXPECT_EQ(api.send("HEAD", by_hash).status, 404);
    EXPECT_EQ(api.send("HEAD", "/api/v2/assets/by-hash/nonsense").status, 404);
    const std::string request = R"({"hash":")" + hash + R"(","file_path":"b.png","tags":["x"]})";
    const auto missing = api.post("/api/v2/assets/from-hash", request);
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(error_code(missing), "blob_not_found");
    upload(api, {file(kPicture)});
    EXPECT_EQ(api.send("HEAD", by_hash).status, 200);
    const auto made = api.post("/api/v2/assets/from-hash", request);
    EXPECT_EQ(made.status, 201);
    EXPECT_EQ(parse(made.body).at("file_path"), "b.png");
    EXPECT_EQ(parse(made.body).at("content_type"), "image/png");
    EXPECT_EQ(api.post("/api/v2/assets/from-hash", R"({"hash":"md5:1"})").status, 422);
}

TEST(ComfyV2Assets, BadUploadsAreRefused) {
    TestApi api;
    const auto wrong_hash =
        api.upload({field("expected_hash", assets::blake3_name("x")), file("y")});
    EXPECT_EQ(wrong_hash.status, 409);
    EXPECT_EQ(error_code(wrong_hash), "hash_mismatch");
    EXPECT_EQ(api.upload({field("file_path", "a")}).status, 422);
    EXPECT_EQ(api.upload({file("a"), file("b")}).status, 422);
    for (const char* path : {"/etc/passwd", "../up", "a/../../b", "a\\b", "a\x01"}) {
        EXPECT_EQ(api.upload({file("a"), field("file_path", path)}).status, 422) << path;
    }
    for (const char* seconds : {"59", "604801", "x", "-1"}) {
        EXPECT_EQ(api.upload({file("a"), field("expires_in", seconds)}).status, 422) << seconds;
    }
    EXPECT_EQ(api.upload({file("a"), field("expected_hash", "md5:0")}).status, 422);
    EXPECT_EQ(api.upload({file("a"), field("other", std::string(20'000, 'x'))}).status, 422);
    const auto json_body = api.post("/api/v2/assets", "{}");
    EXPECT_EQ(json_body.status, 415);
    EXPECT_EQ(api.send("HEAD", "/api/v2/assets/by-hash/" + assets::blake3_name("a")).status, 404);
}

TEST(ComfyV2Assets, LargeUploadsStreamAndHaveALimit) {
    Arrangement arrangement;
    arrangement.options.upload_bytes_max = 4 * 1024 * 1024;
    TestApi api(std::move(arrangement));
    const std::string large(3 * 1024 * 1024 + 11, '\r');
    const json::object asset = upload(api, {file(large)});
    EXPECT_EQ(text(asset, "hash"), assets::blake3_name(large));
    EXPECT_EQ(api.get(text(asset, "url")).body, large);
    const auto refused = api.upload({file(std::string(5 * 1024 * 1024, 'x'))});
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(error_code(refused), "payload_too_large");
}

TEST(ComfyV2Assets, RangesAndConditions) {
    TestApi api;
    const json::object asset = upload(api, {file("0123456789", "d.txt")});
    const std::string url = "/api/v2/assets/" + text(asset, "id") + "/content";
    const auto part = api.get(url, header("Range", "bytes=2-4"));
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.headers.get("Content-Range"), "bytes 2-4/10");
    EXPECT_EQ(api.get(url, header("Range", "bytes=-3")).body, "789");
    const auto beyond = api.get(url, header("Range", "bytes=10-"));
    EXPECT_EQ(beyond.status, 416);
    EXPECT_EQ(beyond.headers.get("Content-Range"), "bytes */10");
    const std::string etag(part.headers.get("ETag"));
    EXPECT_EQ(api.get(url, header("If-None-Match", "\"x\", W/" + etag)).status, 304);
    EXPECT_EQ(api.get(url, header("If-None-Match", "\"x\"")).status, 200);
    net::Headers if_range = header("Range", "bytes=0-0");
    if_range.set("If-Range", etag);
    EXPECT_EQ(api.get(url, if_range).status, 206);
    if_range.set("If-Range", "\"older\"");
    EXPECT_EQ(api.get(url, if_range).status, 200);
    const auto head = api.send("HEAD", url);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.get("Content-Length"), "10");
}

TEST(ComfyV2Assets, ActiveContentIsOnlyDownloaded) {
    TestApi api;
    for (const char* type :
         {"text/html; charset=utf-8", "image/svg+xml", "text/javascript", "application/xml"}) {
        const auto asset = parse(api.upload({field("content_type", type), file("<x>", "x")}).body);
        const auto content = api.get(text(asset, "url"));
        EXPECT_TRUE(content.headers.get("Content-Disposition").starts_with("attachment")) << type;
    }
    const json::object picture = upload(api, {file("p", "bild-ü\"%.png")});
    const auto content = api.get(text(picture, "url") + "&download=1");
    EXPECT_EQ(
        content.headers.get("Content-Disposition"),
        "attachment; filename=\"bild-____.png\"; filename*=UTF-8''bild-%C3%BC%22%25.png"
    );
}

TEST(ComfyV2Assets, LinksWorkWithoutAKeyUntilTheyExpire) {
    Arrangement arrangement;
    arrangement.keys = {
        {"a", "acme", auth::hash_key("acme-key")}, {"b", "other", auth::hash_key("other-key")}
    };
    TestApi api(std::move(arrangement));
    const auto created = api.upload({file(kPicture)}, header("Authorization", "Bearer acme-key"));
    ASSERT_EQ(created.status, 201);
    const json::object asset = parse(created.body);
    const std::string link = text(asset, "url");
    const std::string bare = "/api/v2/assets/" + text(asset, "id") + "/content";
    EXPECT_EQ(api.get(link).body, kPicture);
    EXPECT_EQ(api.get(bare).status, 401);
    EXPECT_EQ(api.get(bare, header("Authorization", "Bearer acme-key")).body, kPicture);
    EXPECT_EQ(api.get(bare, header("Authorization", "Bearer other-key")).status, 404);
    EXPECT_EQ(api.get(link.substr(0, link.size() - 1) + "0x").status, 403);
    api.clock.advance(std::chrono::hours(25));
    EXPECT_EQ(api.get(link).status, 403);
}

TEST(ComfyV2Assets, WorkflowsMayReferToTheirOwnersAssets) {
    TestApi api;
    const json::object asset = upload(api, {file(kPicture)});
    const auto submit_with = [&api](const std::string& info) {
        return api.post(
            "/api/v2/jobs",
            R"({"workflow":{"4":{"class_type":"LoadImage","inputs":{"image":{"__type":"core/ASSET")" +
                info + "}}}}}"
        );
    };
    EXPECT_EQ(submit_with(R"(,"info":{"id":")" + text(asset, "id") + R"("})").status, 201);
    EXPECT_EQ(submit_with(R"(,"info":{"hash":")" + text(asset, "hash") + R"("})").status, 201);
    const std::string unknown = AssetId::make(api.clock.now()).to_string();
    for (const std::string& info : std::vector<std::string>{
             R"(,"info":{"id":")" + unknown + R"(","hash":")" + text(asset, "hash") + R"("})",
             R"(,"info":{"id":"nonsense"})",
             R"(,"info":{"hash":")" + assets::blake3_name("x") + R"("})",
             R"(,"info":{"file_path":"cat.png"})",
             R"(,"info":7)",
             "",
         }) {
        const auto response = submit_with(info);
        EXPECT_EQ(response.status, 422) << info;
        EXPECT_EQ(error_code(response), "missing_asset") << info;
        const json::object details = parse(response.body).at("error").at("details").as_object();
        EXPECT_EQ(
            details.at("node_errors").at("4").as_array().at(0),
            parse(R"({"field":"image","reason":"missing_asset"})")
        );
    }
}

}  // namespace
}  // namespace comfyd::api
