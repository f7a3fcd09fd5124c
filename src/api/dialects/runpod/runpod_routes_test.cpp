// The routes of the RunPod-compatible API, over real sockets.
#include <gtest/gtest.h>

#include "api/dialects/runpod/runpod.hpp"
#include "api/test_support.hpp"
#include "base/crypto.hpp"

namespace comfyd::api {
namespace {

using test::header;
using test::parse;
using test::ScriptedWorker;
using test::TestApi;

constexpr const char* kRequest = R"({"input": {"workflow": {
    "1": {"class_type": "EmptyImage", "inputs": {"width": 8}},
    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}}})";

std::string path(std::string_view rest, std::string_view endpoint = "sdxl") {
    return "/runpod/v2/" + std::string(endpoint) + "/" + std::string(rest);
}

std::string text_of(const json::object& from, std::string_view key) {
    return from.contains(key) ? std::string(from.at(key).as_string()) : std::string();
}

std::string submit(TestApi& api, std::string_view endpoint = "sdxl", std::string body = kRequest) {
    const auto response = api.post(path("run", endpoint), std::move(body));
    EXPECT_EQ(response.status, 200) << response.body;
    const json::object job = parse(response.body);
    EXPECT_EQ(text_of(job, "status"), "IN_QUEUE");
    return text_of(job, "id");
}

std::string status_of(TestApi& api, const std::string& id) {
    return text_of(parse(api.get(path("status/" + id)).body), "status");
}

// Lets the worker make a file that is really there.
void make_output(TestApi& api, std::string bytes) {
    const auto stored = api.upload({{"file", "a.png", "image/png", bytes}});
    const json::object asset = parse(stored.body);
    jobs::Output output;
    output.asset = *AssetId::parse(text_of(asset, "id"));
    output.node_id = "2";
    output.name = "ComfyUI_00001_.png";
    output.folder = "output";
    output.type = "image";
    output.content_type = "image/png";
    output.size_bytes = bytes.size();
    output.hash = text_of(asset, "hash");
    api.on_core([&api, output] { api.fleet.worker->output = output; });
}

TEST(RunPodRoutes, AJobFromQueueToResult) {
    TestApi api;
    make_output(api, "picture");
    const std::string id = submit(api);
    json::object job = parse(api.get(path("status/" + id)).body);
    EXPECT_EQ(text_of(job, "status"), "IN_QUEUE");
    EXPECT_FALSE(job.contains("output"));
    api.open_worker();
    job = api.wait_for_status(path("status/" + id), "COMPLETED");
    EXPECT_TRUE(job.at("delayTime").is_number());
    EXPECT_TRUE(job.at("executionTime").is_number());
    EXPECT_EQ(text_of(job, "workerId"), "scripted");
    const json::object& image = job.at("output").at("images").at(0).as_object();
    EXPECT_EQ(text_of(image, "filename"), "ComfyUI_00001_.png");
    EXPECT_EQ(text_of(image, "type"), "base64");
    EXPECT_EQ(from_base64(text_of(image, "data")), "picture");
    // Other dialects see it too, other endpoints do not.
    EXPECT_EQ(text_of(parse(api.get("/api/v1/tasks/" + id).body), "workflow_id"), "sdxl");
    EXPECT_EQ(api.get(path("status/" + id, "other")).status, 404);
    EXPECT_EQ(api.get(path("status/nonsense")).status, 404);
}

TEST(RunPodRoutes, LinksWhereTheyAreWantedOrNeeded) {
    TestApi api;
    make_output(api, std::string(8 * 1024 * 1024, 'x'));  // base64 of it is above 10 MB
    api.open_worker();
    const std::string id = submit(api);
    const json::object job = api.wait_for_status(path("status/" + id), "COMPLETED");
    const json::object& image = job.at("output").at("images").at(0).as_object();
    EXPECT_EQ(text_of(image, "type"), "s3_url");
    EXPECT_EQ(api.get(text_of(image, "data")).status, 200);

    make_output(api, "small");
    const auto wanted = api.post(
        path("runsync"),
        R"({"input": {"return": "url", "workflow": {"2": {"class_type": "SaveImage", "inputs": {}}}}})"
    );
    const json::object sync = parse(wanted.body);
    EXPECT_EQ(text_of(sync, "status"), "COMPLETED") << wanted.body;
    EXPECT_EQ(text_of(sync.at("output").at("images").at(0).as_object(), "type"), "s3_url");
}

TEST(RunPodRoutes, RunSyncWaitsForTheEnd) {
    TestApi api;
    make_output(api, "picture");
    api.open_worker();
    const auto done = api.post(path("runsync"), kRequest);
    ASSERT_EQ(done.status, 200);
    const json::object job = parse(done.body);
    EXPECT_EQ(text_of(job, "status"), "COMPLETED");
    EXPECT_EQ(job.at("output").at("images").as_array().size(), 1U);

    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    const auto early = api.post(path("runsync?wait=1000"), kRequest);
    ASSERT_EQ(early.status, 200);
    const json::object running = parse(early.body);
    EXPECT_EQ(text_of(running, "status"), "IN_PROGRESS");
    EXPECT_FALSE(running.contains("output"));
    api.wait_until_no_stream();

    const auto cancelled = api.post(path("cancel/" + text_of(running, "id")), "");
    EXPECT_EQ(text_of(parse(cancelled.body), "status"), "CANCELLED");
    EXPECT_EQ(api.post(path("runsync?wait=5"), kRequest).status, 400);
}

TEST(RunPodRoutes, FailuresAreToldAndMayBeTriedAgain) {
    TestApi api;
    api.open_worker(ScriptedWorker::Script::fail);
    const auto failed = api.post(path("runsync"), kRequest);
    ASSERT_EQ(failed.status, 200) << "the request itself went well";
    const json::object job = parse(failed.body);
    EXPECT_EQ(text_of(job, "status"), "FAILED");
    EXPECT_EQ(text_of(job, "error"), "node 3 (KSampler): the sampler burst");
    const std::string id = text_of(job, "id");
    api.open_worker();
    const auto again = api.post(path("retry/" + id), "");
    ASSERT_EQ(again.status, 200) << again.body;
    EXPECT_EQ(parse(again.body).at("id"), json::value(id));
    EXPECT_EQ(text_of(parse(again.body), "status"), "IN_QUEUE");
    api.wait_for_status(path("status/" + id), "COMPLETED");
    const auto refused = api.post(path("retry/" + id), "");
    EXPECT_EQ(refused.status, 409);
    EXPECT_NE(text_of(parse(refused.body), "error").find("COMPLETED"), std::string::npos);
}

TEST(RunPodRoutes, CancelledJobsAreNotTriedAgain) {
    TestApi api;
    const std::string id = submit(api);
    EXPECT_EQ(text_of(parse(api.post(path("cancel/" + id), "").body), "status"), "CANCELLED");
    EXPECT_EQ(api.post(path("retry/" + id), "").status, 409);
    EXPECT_EQ(text_of(parse(api.post(path("cancel/" + id), "").body), "status"), "CANCELLED");
}

TEST(RunPodRoutes, AStreamGivesEachChunkOnce) {
    TestApi api;
    make_output(api, "picture");
    const std::string id = submit(api);
    json::object stream = parse(api.get(path("stream/" + id)).body);
    EXPECT_EQ(text_of(stream, "status"), "IN_QUEUE");
    EXPECT_TRUE(stream.at("stream").as_array().empty());
    api.open_worker();
    api.wait_for_status(path("status/" + id), "COMPLETED");
    stream = parse(api.get(path("stream/" + id)).body);
    EXPECT_EQ(text_of(stream, "status"), "COMPLETED");
    ASSERT_EQ(stream.at("stream").as_array().size(), 1U);
    EXPECT_EQ(
        text_of(stream.at("stream").at(0).at("output").as_object(), "data"), to_base64("picture")
    );
    stream = parse(api.get(path("stream/" + id)).body);
    EXPECT_TRUE(stream.at("stream").as_array().empty());
}

TEST(RunPodRoutes, AStreamTellsProgress) {
    TestApi api;
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    const std::string id = submit(api);
    json::array chunks;
    while (chunks.empty()) {
        chunks = parse(api.get(path("stream/" + id)).body).at("stream").as_array();
    }
    EXPECT_EQ(text_of(chunks.at(0).at("output").as_object(), "type"), "progress");
    EXPECT_EQ(chunks.at(0).at("output").at("value"), 0.5);
    const json::object again = parse(api.get(path("stream/" + id)).body);
    EXPECT_TRUE(again.at("stream").as_array().empty()) << "nothing is new";
}

TEST(RunPodRoutes, PurgeTakesOnlyWhatWaitsAtTheEndpoint) {
    TestApi api;
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    const std::string running = submit(api);
    api.wait_for_status(path("status/" + running), "IN_PROGRESS");
    const std::string first = submit(api);
    const std::string second = submit(api);
    const std::string other = submit(api, "flux");
    const json::object before = parse(api.get(path("health")).body);
    EXPECT_EQ(before.at("jobs").at("inQueue"), 2);
    EXPECT_EQ(before.at("jobs").at("inProgress"), 1);
    EXPECT_EQ(before.at("workers").at("running"), 1);
    const json::object purged = parse(api.post(path("purge-queue"), "").body);
    EXPECT_EQ(purged.at("removed"), 2);
    EXPECT_EQ(text_of(purged, "status"), "completed");
    EXPECT_EQ(status_of(api, first), "CANCELLED");
    EXPECT_EQ(status_of(api, second), "CANCELLED");
    EXPECT_EQ(status_of(api, running), "IN_PROGRESS");
    EXPECT_EQ(text_of(parse(api.get(path("status/" + other, "flux")).body), "status"), "IN_QUEUE");
    EXPECT_EQ(parse(api.post(path("purge-queue"), "").body).at("removed"), 0);
}

TEST(RunPodRoutes, InputPicturesBecomeAssets) {
    TestApi api;
    const std::string body = R"({"input": {
        "images": [{"name": "in.png", "image": "data:image/png;base64,aGVsbG8="},
                   {"name": "spare.png", "image": "aGVsbG8="}],
        "workflow": {"1": {"class_type": "LoadImage", "inputs": {"image": "in.png"}},
                     "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}}})";
    net::Headers key = header("Idempotency-Key", "k1");
    const auto made = api.post(path("run"), body, key);
    ASSERT_EQ(made.status, 200) << made.body;
    const std::string id = text_of(parse(made.body), "id");
    const json::object graph = parse(api.ledger.spec(*JobId::parse(id)).workflow);
    const json::value& reference = graph.at("1").at("inputs").at("image");
    EXPECT_EQ(reference.at("__type"), "core/ASSET");
    EXPECT_EQ(reference.at("info").at("name"), "in.png");
    api.clock.advance(Millis(1'500));  // the time to live counts from now each time
    const auto replayed = api.post(path("run"), body, key);
    ASSERT_EQ(replayed.status, 200) << replayed.body;
    EXPECT_EQ(text_of(parse(replayed.body), "id"), id);
    make_output(api, "picture");
    api.open_worker();
    const json::object job = api.wait_for_status(path("status/" + id), "COMPLETED");
    ASSERT_EQ(job.at("output").at("errors").as_array().size(), 1U);
    EXPECT_EQ(
        job.at("output").at("errors").at(0), "the input image 'spare.png' is not used by any node"
    );
}

TEST(RunPodRoutes, BadRequestsAreRefused) {
    TestApi api;
    EXPECT_EQ(api.post(path("run"), "{").status, 400);
    EXPECT_EQ(api.post(path("run"), "").status, 400);
    EXPECT_EQ(api.post(path("run"), R"({"input": {"workflow": {}}})").status, 400);
    EXPECT_EQ(api.post(path("run", "a%20b"), kRequest).status, 404);
    const auto hook = api.post(
        path("run"),
        R"({"input": {"workflow": {"2": {"class_type": "SaveImage", "inputs": {}}}}, "webhook": "ftp://x"})"
    );
    EXPECT_EQ(hook.status, 400);
    EXPECT_NE(text_of(parse(hook.body), "error").find("'webhook'"), std::string::npos);
    const auto large = api.post(path("run"), std::string(runpod::kRunBytesMax + 1, ' '));
    EXPECT_EQ(large.status, 413);
}

TEST(RunPodRoutes, AreInTheDocument) {
    TestApi api;
    const json::object document = parse(api.get("/openapi.json").body);
    for (const char* rest :
         {"run",
          "runsync",
          "status/{id}",
          "stream/{id}",
          "cancel/{id}",
          "retry/{id}",
          "purge-queue",
          "health"}) {
        EXPECT_TRUE(document.at("paths").as_object().contains(path(rest, "{endpoint}"))) << rest;
    }
}

TEST(RunPodRoutes, KeysAndTenants) {
    test::Arrangement setup;
    setup.keys = {
        {"a", "one", auth::hash_key("key-of-one")}, {"b", "two", auth::hash_key("key-of-two")}
    };
    TestApi api(std::move(setup));
    const auto one = header("Authorization", "Bearer key-of-one");
    const auto two = header("Authorization", "Bearer key-of-two");
    EXPECT_EQ(api.post(path("run"), kRequest).status, 401);
    const auto made = api.post(path("run"), kRequest, one);
    ASSERT_EQ(made.status, 200) << made.body;
    const std::string id = text_of(parse(made.body), "id");
    EXPECT_EQ(api.get(path("status/" + id), two).status, 404);
    EXPECT_EQ(parse(api.post(path("purge-queue"), "", two).body).at("removed"), 0);
    EXPECT_EQ(parse(api.post(path("purge-queue"), "", one).body).at("removed"), 1);
}

}  // namespace
}  // namespace comfyd::api
