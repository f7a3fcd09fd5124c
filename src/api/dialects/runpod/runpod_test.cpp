// What the RunPod-compatible API reads and answers, without sockets.
#include "api/dialects/runpod/runpod.hpp"

#include <gtest/gtest.h>

#include "api/dialects/shapes_fixture.hpp"
#include "base/crypto.hpp"

namespace comfyd::api::runpod {
namespace {

using fixture::text;
using jobs::State;

json::object parse(std::string_view from) {
    return json::parse_object(from).value();
}

Result<Decoded> decode(std::string_view from) {
    return decode_request(parse(from));
}

std::string field_of(const Error& error) {
    const json::value* field = json::find(error.details, "field");
    return field == nullptr ? std::string() : std::string(field->get_string());
}

jobs::View view_of(State state) {
    jobs::View view;
    view.job = fixture::job(state);
    return view;
}

TEST(RunPod, ReadsPolicyAndInput) {
    const auto plain = decode(R"({"input": {"workflow": {"1": {}}}})");
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_EQ(plain->submission.spec.dialect, "runpod");
    EXPECT_EQ(plain->submission.spec.timeout, std::chrono::minutes(10));
    EXPECT_EQ(plain->submission.time_to_live, std::chrono::hours(24));
    EXPECT_EQ(plain->submission.spec.priority, jobs::kPriorityDefault);
    EXPECT_TRUE(plain->submission.workflow.contains("1"));

    const auto full =
        decode(R"({"input": {"workflow": {"1": {}}, "return": "url", "comfy_org_api_key": "k"},
        "webhook": "https://example.com/h",
        "policy": {"executionTimeout": 5000, "ttl": 604800000, "lowPriority": true}})");
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(full->submission.spec.timeout, Millis(5000));
    EXPECT_EQ(full->submission.time_to_live, std::chrono::hours(24 * 7));
    EXPECT_EQ(full->submission.spec.priority, kLowPriority);
    EXPECT_EQ(full->submission.spec.extra_data.at("api_key_comfy_org"), "k");
    EXPECT_EQ(full->submission.spec.dialect_data.at("return"), "url");
    EXPECT_EQ(full->common.at("webhook_url"), "https://example.com/h");

    const auto as_text = decode(R"({"input": "{\"workflow\": {\"7\": {}}}"})");
    ASSERT_TRUE(as_text) << as_text.error().message;
    EXPECT_TRUE(as_text->submission.workflow.contains("7"));
}

TEST(RunPod, SaysWhichFieldIsWrong) {
    const std::pair<const char*, const char*> cases[] = {
        {R"({})", "input"},
        {R"({"input": 5})", "input"},
        {R"({"input": "nonsense"})", "input"},
        {R"({"input": {}})", "input.workflow"},
        {R"({"input": {"workflow": []}})", "input.workflow"},
        {R"({"input": {"workflow": {}, "return": "s3"}})", "input.return"},
        {R"({"input": {"workflow": {}, "return": 1}})", "input.return"},
        {R"({"input": {"workflow": {}}, "s3Config": "mine"})", "s3Config"},
        {R"({"input": {"workflow": {}}, "s3Config": {"bucketName": "b"}})", "s3Config.accessId"},
        {R"({"input": {"workflow": {}}, "s3Config": {"bucketName": 5}})", "s3Config.bucketName"},
        {R"({"input": {"workflow": {}}, "policy": {"executionTimeout": 4999}})",
         "policy.executionTimeout"},
        {R"({"input": {"workflow": {}}, "policy": {"executionTimeout": "1m"}})",
         "policy.executionTimeout"},
        {R"({"input": {"workflow": {}}, "policy": {"ttl": 604800001}})", "policy.ttl"},
        {R"({"input": {"workflow": {}}, "policy": {"lowPriority": 1}})", "policy.lowPriority"},
        {R"({"input": {"workflow": {}, "images": {}}})", "input.images"},
        {R"({"input": {"workflow": {}, "images": [7]}})", "input.images[0]"},
        {R"({"input": {"workflow": {}, "images": [{"name": "a"}]}})", "input.images[0]"},
        {R"({"input": {"workflow": {}, "images": [{"name": "", "image": "AA=="}]}})",
         "input.images[0].name"},
        {R"({"input": {"workflow": {}, "images": [{"name": "a", "image": "AA=="}, {"name": "a", "image": "AA=="}]}})",
         "input.images[1].name"},
        {R"({"input": {"workflow": {}, "images": [{"name": "a", "image": "?"}]}})",
         "input.images[0].image"},
        {R"({"input": {"workflow": {}, "images": [{"name": "a", "image": "data:image/png,x"}]}})",
         "input.images[0].image"},
        {R"({"input": {"workflow": {}, "images": [{"name": "a", "image": "ftp://x/a.png"}]}})",
         "input.images[0].image"},
    };
    for (const auto& [body, field] : cases) {
        const auto decoded = decode(body);
        ASSERT_FALSE(decoded) << body;
        EXPECT_EQ(decoded.error().code, Code::invalid_argument) << body;
        EXPECT_EQ(field_of(decoded.error()), field) << body;
    }
}

TEST(RunPod, PicturesComeAsBase64OrDataUrl) {
    const auto decoded = decode(R"({"input": {"workflow": {}, "images": [
        {"name": "a.png", "image": "data:image/png;base64,aGVs\nbG8="},
        {"name": "b.png", "image": "aGVsbG8"}]}})");
    ASSERT_TRUE(decoded) << decoded.error().message;
    ASSERT_EQ(decoded->images.size(), 2U);
    EXPECT_EQ(decoded->images[0].bytes, "hello");
    EXPECT_EQ(decoded->images[0].content_type, "image/png");
    EXPECT_EQ(decoded->images[1].bytes, "hello");
}

TEST(RunPod, LoadersGetTheStoredPictures) {
    json::object graph = parse(R"({
        "1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
        "2": {"class_type": "LoadImageMask", "inputs": {"image": "sub/b.png [input]", "channel": "alpha"}},
        "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "a.png"}},
        "4": {"class_type": "LoadImage", "inputs": {"image": "of the worker.png"}}})");
    const workflow::Catalogue catalogue({});
    const auto unused = bind_images(
        graph, catalogue, {{"a.png", "blake3:1"}, {"sub/b.png", "blake3:2"}, {"c.png", "blake3:3"}}
    );
    EXPECT_EQ(unused, std::vector<std::string>{"c.png"});
    EXPECT_EQ(
        text(graph.at("1").at("inputs").at("image")),
        text(parse(
            R"({"__type": "core/ASSET", "info": {"hash": "blake3:1", "file_path": "a.png", "name": "a.png"}})"
        ))
    );
    EXPECT_EQ(graph.at("2").at("inputs").at("image").at("info").at("file_path"), "b.png");
    EXPECT_EQ(graph.at("3").at("inputs").at("text"), "a.png");
    EXPECT_EQ(graph.at("4").at("inputs").at("image"), "of the worker.png");
}

TEST(RunPod, NamesOfEndpointsAndWaits) {
    EXPECT_TRUE(check_endpoint("sd-xl_1.0"));
    EXPECT_FALSE(check_endpoint(""));
    EXPECT_FALSE(check_endpoint("a b"));
    EXPECT_FALSE(check_endpoint("\xFF"));
    EXPECT_FALSE(check_endpoint(std::string(129, 'a')));
    EXPECT_EQ(decode_wait("").value(), Millis(90'000));
    EXPECT_EQ(decode_wait("1000").value(), Millis(1'000));
    for (const char* bad : {"999", "300001", "1s", "-5", "1e4"}) {
        EXPECT_FALSE(decode_wait(bad)) << bad;
    }
}

TEST(RunPod, EveryStateHasAStatus) {
    EXPECT_EQ(status_of(fixture::job(State::queued)), "IN_QUEUE");
    EXPECT_EQ(status_of(fixture::job(State::retry_waiting)), "IN_QUEUE");
    EXPECT_EQ(status_of(fixture::job(State::running)), "IN_PROGRESS");
    EXPECT_EQ(status_of(fixture::job(State::completed)), "COMPLETED");
    EXPECT_EQ(status_of(fixture::job(State::failed)), "FAILED");
    EXPECT_EQ(status_of(fixture::job(State::cancelled)), "CANCELLED");
    EXPECT_EQ(status_of(fixture::job(State::expired)), "TIMED_OUT");
    jobs::Job slow = fixture::job(State::failed);
    slow.failure->code = Code::execution_timeout;
    EXPECT_EQ(status_of(slow), "TIMED_OUT");
}

TEST(RunPod, ShowsJobs) {
    const std::string id = fixture::kJob.to_string();
    EXPECT_EQ(
        text(encode_status(view_of(State::queued), std::nullopt)),
        text(json::object{{"id", id}, {"status", "IN_QUEUE"}})
    );
    EXPECT_EQ(
        text(encode_status(view_of(State::completed), json::object{{"images", json::array()}})),
        text(json::object{
            {"id", id},
            {"status", "COMPLETED"},
            {"delayTime", 2'000},
            {"executionTime", 3'500},
            {"workerId", "gpu-1"},
            {"output", {{"images", json::array()}}},
        })
    );
    const json::object failed = encode_status(view_of(State::failed), std::nullopt);
    EXPECT_EQ(failed.at("error"), "node 3 (KSampler): the GPU is full");
    EXPECT_EQ(failed.at("errorDetails").at("code"), "out_of_memory");
    EXPECT_FALSE(failed.contains("output"));
}

TEST(RunPod, ShowsHealth) {
    jobs::WorkerInfo idle;
    idle.status = jobs::WorkerStatus::idle;
    jobs::WorkerInfo down;
    down.status = jobs::WorkerStatus::down;
    const json::object health = encode_health({1, 2, 3, 4, 5}, {idle, idle, down});
    EXPECT_EQ(
        text(health.at("jobs")),
        R"({"completed":1,"failed":2,"inProgress":3,"inQueue":4,"retried":5})"
    );
    EXPECT_EQ(health.at("workers").at("idle"), 2);
    EXPECT_EQ(health.at("workers").at("ready"), 2);
    EXPECT_EQ(health.at("workers").at("unhealthy"), 1);
}

TEST(RunPod, AChunkIsGivenOnce) {
    StreamCursors cursors;
    EXPECT_TRUE(cursors.give_progress(fixture::kJob, "half"));
    EXPECT_FALSE(cursors.give_progress(fixture::kJob, "half"));
    EXPECT_TRUE(cursors.give_progress(fixture::kJob, "most"));
    EXPECT_TRUE(cursors.give_result(fixture::kJob, 1));
    EXPECT_FALSE(cursors.give_result(fixture::kJob, 1));
    EXPECT_TRUE(cursors.give_result(fixture::kJob, 2)) << "after a retry";
    const Time now = fixture::kCreated;
    for (std::size_t i = 0; i < StreamCursors::kJobsMax; ++i) {
        cursors.give_result(JobId::make(now), 1);
    }
    EXPECT_TRUE(cursors.give_result(fixture::kJob, 2)) << "the oldest are forgotten";
}

}  // namespace
}  // namespace comfyd::api::runpod
