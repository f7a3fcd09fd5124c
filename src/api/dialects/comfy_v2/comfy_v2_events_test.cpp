// Event streams of the Comfy API v2, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/dialects/comfy_v2/comfy_v2_fixture.hpp"

namespace comfyd::api {
namespace {

using test::Arrangement;
using test::error_code;
using test::header;
using test::ScriptedWorker;
using test::self_of;
using test::submit_job;
using test::TestApi;
using test::text;
using testing::HasSubstr;

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

}  // namespace
}  // namespace comfyd::api
