// A job's whole way through the primary dialect, on the embedded engine.
#include <gtest/gtest.h>

#include "assets/blake3.hpp"
#include "native_support.hpp"

namespace comfyd::support {
namespace {

// Its one output, as a whole, in part and not again.
void expect_picture(Comfyd& comfyd, const json::value& job) {
    ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    ASSERT_EQ(job.at("outputs").as_array().size(), 1U);
    const json::object& output = job.at("outputs").at(0).as_object();
    EXPECT_EQ(output.at("type"), "image");
    EXPECT_EQ(output.at("content_type"), "image/png");

    const std::string path = std::string(output.at("url").as_string()).substr(comfyd.url().size());
    const Reply picture = comfyd.http().get(path);
    ASSERT_EQ(picture.status, 200);
    EXPECT_EQ(picture.headers.get("Content-Type"), "image/png");
    EXPECT_EQ(picture.body.substr(1, 3), "PNG");
    EXPECT_EQ(static_cast<std::int64_t>(picture.body.size()), output.at("size_bytes").as_int64());
    EXPECT_EQ(assets::blake3_name(picture.body), output.at("hash").as_string());

    const Reply part = comfyd.http().get(path, header("Range", "bytes=1-3"));
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "PNG");
    EXPECT_EQ(
        part.headers.get("Content-Range"), "bytes 1-3/" + std::to_string(picture.body.size())
    );
    const std::string etag(picture.headers.get("ETag"));
    EXPECT_EQ(comfyd.http().get(path, header("If-None-Match", etag)).status, 304);
    EXPECT_EQ(comfyd.http().get(path, header("Range", "bytes=999999-")).status, 416);
}

TEST(Jobs, APictureComesBack) {
    Comfyd comfyd;
    const json::value job = comfyd.wait_finished(comfyd.submit(small_picture()));
    expect_picture(comfyd, job);
    EXPECT_EQ(job.at("outputs").at(0).at("node_id"), "3");
}

// Small ones are kept in the database, large ones are files.
class PictureOfAWorker : public NativeTest, public testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, PictureOfAWorker, testing::Values(0, 40'000));

TEST_P(PictureOfAWorker, ComesBackAndIsThereAfterACrash) {
    start({.output_bytes = GetParam()});
    const json::value job = comfyd_->wait_finished(comfyd_->submit(text_to_image("a")));
    expect_picture(*comfyd_, job);
    comfyd_->restart();  // by SIGKILL
    const std::string id(job.at("id").as_string());
    expect_picture(*comfyd_, comfyd_->wait_finished(id));
}

TEST(Jobs, TheSameJobIsSeenByEveryDialect) {
    Comfyd comfyd;
    const std::string id = comfyd.submit(small_picture());
    comfyd.wait_finished(id);
    EXPECT_EQ(comfyd.http().get("/v1/workflows/execution/" + id).json_at("/status"), "completed");
    EXPECT_EQ(
        comfyd.http().get("/v2/workflows/execution/" + id).json_at("/execution_id"), json::value(id)
    );
    EXPECT_EQ(comfyd.http().get("/api/v1/tasks/" + id).json_at("/status"), "completed");
    EXPECT_EQ(comfyd.http().get("/comfyui/execution/" + id).status, 200);
}

TEST(Jobs, ListsArePagedAndFiltered) {
    Comfyd comfyd;
    std::vector<std::string> ids;
    for (int i = 0; i < 5; ++i) {
        ids.push_back(comfyd.submit(small_picture(i)));
    }
    for (const std::string& id : ids) {
        comfyd.wait_finished(id);
    }
    std::vector<std::string> listed;
    std::string cursor;
    for (int pages = 0; pages < 10; ++pages) {
        const Reply page =
            comfyd.http().get("/api/v2/jobs?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
        ASSERT_EQ(page.status, 200) << page.body;
        const json::value jobs = page.json_at("/jobs");
        for (const json::value& job : jobs.as_array()) {
            listed.emplace_back(job.at("id").as_string());
        }
        const json::value next = page.json_at("/next_cursor");
        if (!next.is_string()) {
            break;
        }
        cursor = std::string(next.as_string());
    }
    EXPECT_EQ(listed, std::vector<std::string>(ids.rbegin(), ids.rend()));
    EXPECT_EQ(
        comfyd.http().get("/api/v2/jobs?status=failed").json_at("/jobs").as_array().size(), 0U
    );
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs?status=nonsense").status / 100, 4);
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs?limit=-1").status / 100, 4);
}

TEST(Jobs, BadWorkflowsAreRefusedAtNodeAndField) {
    Comfyd comfyd;
    json::object unknown = small_picture();
    unknown["2"].as_object()["class_type"] = "NoSuchNode";
    const Reply reply = comfyd.http().post_json("/api/v2/jobs", {{"workflow", unknown}});
    EXPECT_EQ(reply.status, 422);
    EXPECT_EQ(reply.json_at("/error/code"), "invalid_workflow");
    EXPECT_EQ(reply.json_at("/error/details/node_errors/2/0/reason"), "missing_node_type");

    const Reply ui = comfyd.http().post_json(
        "/api/v2/jobs",
        {{"workflow", json::object{{"nodes", json::array()}, {"links", json::array()}}}}
    );
    EXPECT_EQ(ui.status, 422);
    EXPECT_EQ(ui.json_at("/error/code"), "workflow_format_ui");

    const Reply seed = comfyd.http().post_json("/comfyui/execute", {{"workflow", unknown}});
    EXPECT_EQ(seed.status, 400);
    EXPECT_EQ(seed.json_at("/error_code"), "INVALID_WORKFLOW");
    EXPECT_EQ(seed.json_at("/details/missing_nodes/0"), "NoSuchNode");

    for (const char* body :
         {"",
          "{",
          "[]",
          "7",
          "{}",
          R"({"workflow": 5})",
          R"({"workflow": {}})",
          R"({"workflow": {"1": null}})",
          R"({"workflow": {"1": {"class_type": 7}}})"}) {
        const Reply bad = comfyd.http().post("/api/v2/jobs", body);
        EXPECT_EQ(bad.status / 100, 4) << body << " -> " << bad.body;
        EXPECT_TRUE(bad.json_at("/error/message").is_string()) << body;
    }
    EXPECT_EQ(comfyd.http().get("/api/v2/jobs").json_at("/jobs").as_array().size(), 0U)
        << "nothing was half-accepted";
}

TEST(Jobs, IdempotencyKeysRejectOrReplayByDialect) {
    Comfyd comfyd;
    net::Headers key;
    key.set("Idempotency-Key", "k1");
    const std::string id = comfyd.submit(small_picture(), {}, key);
    const Reply again =
        comfyd.http().post_json("/api/v2/jobs", {{"workflow", small_picture()}}, key);
    EXPECT_EQ(again.status, 422);
    EXPECT_EQ(again.json_at("/error/code"), "idempotency_key_reuse");

    net::Headers other;
    other.set("Idempotency-Key", "k2");
    const Reply first =
        comfyd.http().post_json("/v2/workflows/execute", {{"workflow", small_picture()}}, other);
    ASSERT_EQ(first.status, 202) << first.body;
    const Reply replay =
        comfyd.http().post_json("/v2/workflows/execute", {{"workflow", small_picture()}}, other);
    EXPECT_EQ(replay.status, 202);
    EXPECT_EQ(replay.json_at("/execution_id"), first.json_at("/execution_id"));
    const Reply changed =
        comfyd.http().post_json("/v2/workflows/execute", {{"workflow", small_picture(5)}}, other);
    EXPECT_EQ(changed.status, 422) << changed.body;

    // A refused request does not use up its key.
    net::Headers third;
    third.set("Idempotency-Key", "k3");
    EXPECT_EQ(comfyd.http().post("/api/v2/jobs", R"({"workflow": {}})", third).status, 422);
    comfyd.submit(small_picture(), {}, third);

    comfyd.restart();
    EXPECT_EQ(
        comfyd.http().post_json("/api/v2/jobs", {{"workflow", small_picture()}}, key).status, 422
    );
}

TEST(Jobs, UploadedPicturesAreInputs) {
    Comfyd comfyd;
    const json::value made = comfyd.wait_finished(comfyd.submit(small_picture()));
    const std::string url = std::string(made.at("outputs").at(0).at("url").as_string());
    const std::string png = comfyd.http().get(url.substr(comfyd.url().size())).body;
    const std::vector<net::FormPart> form{
        {"file", "in.png", "image/png", png},
        {"content_type", std::nullopt, "", "image/png"},
        {"file_path", std::nullopt, "", "in.png"},
    };
    const Reply asset = comfyd.http().upload("/api/v2/assets", form);
    ASSERT_TRUE(asset.status == 200 || asset.status == 201) << asset.body;
    EXPECT_EQ(asset.json_at("/hash"), json::value(assets::blake3_name(png)));
    const auto load = [](const json::value& id) {
        return json::object{
            {"1",
             {{"class_type", "LoadImage"},
              {"inputs", {{"image", {{"__type", "core/ASSET"}, {"info", {{"id", id}}}}}}}}},
            {"2",
             {{"class_type", "SaveImage"},
              {"inputs", {{"images", json::array{"1", 0}}, {"filename_prefix", "copy"}}}}}
        };
    };
    const json::value job = comfyd.wait_finished(comfyd.submit(load(asset.json_at("/id"))));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job);
    const Reply missing = comfyd.http().post_json(
        "/api/v2/jobs", {{"workflow", load("00000000-0000-7000-8000-000000000000")}}
    );
    EXPECT_EQ(missing.status, 422);
    EXPECT_EQ(missing.json_at("/error/code"), "missing_asset");
}

TEST(Jobs, UnknownThingsAnswerInJson) {
    Comfyd comfyd;
    const Reply unknown = comfyd.http().get("/no/such/route");
    EXPECT_EQ(unknown.status, 404);
    EXPECT_TRUE(unknown.json_at("/error/message").is_string());
    const Reply method = comfyd.http().put("/api/v2/jobs", "");
    EXPECT_EQ(method.status, 405);
    EXPECT_NE(method.headers.get("Allow").find("POST"), std::string_view::npos);
    for (const char* path :
         {"/api/v2/jobs/00000000-0000-7000-8000-000000000000",
          "/api/v2/jobs/nonsense",
          "/v1/workflows/execution/nonsense",
          "/api/v1/tasks/nonsense",
          "/comfyui/execution/x"}) {
        EXPECT_EQ(comfyd.http().get(path).status, 404) << path;
    }
}

TEST(Jobs, TasksDialect) {
    Comfyd comfyd;
    const Reply made = comfyd.http().post_json(
        "/api/v1/tasks",
        {{"workflow_id", "small_v1"}, {"priority", 7}, {"payload", small_picture()}}
    );
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.json_at("/status"), "pending");
    EXPECT_EQ(made.json_at("/workflow_id"), "small_v1");
    const std::string id(made.json_at("/id").as_string());
    comfyd.wait_finished(id);
    const Reply task = comfyd.http().get("/api/v1/tasks/" + id);
    EXPECT_EQ(task.json_at("/status"), "completed");
    EXPECT_TRUE(task.json_at("/result").is_object());
    EXPECT_EQ(comfyd.http().get("/api/v1/tasks?status=completed").json_at("/count"), 1);
    EXPECT_EQ(comfyd.http().get("/api/v1/queue/metrics").json_at("/completed_tasks"), 1);
    EXPECT_EQ(comfyd.http().get("/api/v1/workers/metrics").json_at("/total_workers"), 1);
    EXPECT_EQ(comfyd.http().get("/api/v1/workers").json_at("/workers").as_array().size(), 1U);
    EXPECT_EQ(comfyd.http().get("/health").status, 200);
    EXPECT_EQ(comfyd.http().get("/ready").status, 200);
}

TEST(Jobs, VersionsOfTheWorkflowsDialect) {
    Comfyd comfyd;
    const Reply v1 =
        comfyd.http().post_json("/v1/workflows/execute", {{"workflow", small_picture()}});
    ASSERT_EQ(v1.status, 202) << v1.body;
    EXPECT_TRUE(v1.headers.contains("Deprecation"));
    EXPECT_NE(v1.headers.get("Link").find("/v2/workflows/execute"), std::string_view::npos);
    EXPECT_EQ(v1.headers.get("X-API-Version"), "1.0");
    const Reply v2 = comfyd.http().post_json(
        "/v2/workflows/execute",
        {{"workflow", small_picture()}, {"execution_config", {{"timeout", 60}, {"priority", 9}}}}
    );
    ASSERT_EQ(v2.status, 202) << v2.body;
    EXPECT_FALSE(v2.headers.contains("Deprecation"));
    EXPECT_EQ(v2.headers.get("X-API-Version"), "2.0");
    for (const char* field :
         {"execution_id",
          "status",
          "submitted_at",
          "started_at",
          "completed_at",
          "progress",
          "estimated_remaining",
          "result",
          "error",
          "webhook_delivered"}) {
        EXPECT_TRUE(v2.json().as_object().contains(field)) << field;
    }
    for (const char* body :
         {R"({"workflow": {}, "priority": 11})", R"({"workflow": {}, "timeout": -1})"}) {
        const Reply bad = comfyd.http().post("/v1/workflows/execute", body);
        EXPECT_EQ(bad.status / 100, 4);
        EXPECT_EQ(bad.json_at("/error/category"), "validation_error") << bad.body;
    }
}

TEST(Jobs, MetricsAndDocumentsAreServed) {
    Comfyd comfyd;
    comfyd.wait_finished(comfyd.submit(small_picture()));
    const std::string metrics = comfyd.http().get("/metrics").body;
    for (const char* series :
         {"comfyd_queue_jobs",
          "comfyd_jobs_submitted_total",
          "comfyd_jobs_finished_total",
          "comfyd_workers",
          "comfyd_http_requests_total",
          "comfyd_ledger_commits"}) {
        EXPECT_NE(metrics.find(series), std::string::npos) << series;
    }
    const json::value document = comfyd.http().get("/openapi.json").json();
    for (const char* path :
         {"/api/v2/jobs",
          "/api/v2/assets/{id}/content",
          "/v1/workflows/execute",
          "/v2/workflows/execute",
          "/comfyui/execute",
          "/api/v1/tasks"}) {
        EXPECT_TRUE(document.at("paths").as_object().contains(path)) << path;
    }
    EXPECT_EQ(comfyd.http().get("/healthz").status, 200);
    EXPECT_EQ(comfyd.http().get("/readyz").status, 200);
    EXPECT_EQ(comfyd.http().get("/docs").status, 200);
}

}  // namespace
}  // namespace comfyd::support
