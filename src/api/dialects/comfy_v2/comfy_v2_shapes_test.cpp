// How jobs and events are shown.
#include "api/dialects/comfy_v2/comfy_v2_shapes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

using test::TestApi;
using test::text;
using testing::HasSubstr;

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
        json::value(to_rfc3339(view.job.created_at + api.services.rules.retention))
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

}  // namespace
}  // namespace comfyd::api
