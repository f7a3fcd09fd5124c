#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "support/webhook_receiver.hpp"

namespace comfyd::support {
namespace {

TEST(Process, CollectsOutputAndExitStatus) {
    const TempDir directory;
    Process process(ProcessOptions{
        .arguments = {"/bin/sh", "-c", "echo first; echo ready $NAME; pwd; echo oops >&2; exit 3"},
        .environment = {{"NAME", "now"}},
        .directory = directory.path().string(),
    });
    EXPECT_EQ(process.wait_for_line("ready "), "now");
    EXPECT_EQ(process.wait(), 3);
    EXPECT_EQ(process.wait_for_line("never"), std::nullopt);
    EXPECT_NE(process.output().find(directory.path().filename().string()), std::string::npos);
    EXPECT_EQ(process.errors(), "oops\n");
}

TEST(Process, CanBeKilledAndSaysSo) {
    Process process({"/bin/sh", "-c", "echo up; exec sleep 1000"});
    ASSERT_TRUE(process.wait_for_line("up"));
    EXPECT_TRUE(process.running());
    process.kill(SIGKILL);
    EXPECT_EQ(process.wait(), 128 + SIGKILL);
}

TEST(Process, ThatCannotStartThrows) {
    EXPECT_THROW(Process({"/no/such/program"}), std::runtime_error);
    EXPECT_THROW(Process(std::vector<std::string>{}), std::runtime_error);
}

TEST(TempDir, GoesAway) {
    std::filesystem::path path;
    {
        const TempDir directory;
        path = directory.path();
        EXPECT_EQ(read_file(directory.write("a/b.txt", "hello")), "hello");
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WebhookReceiver, RecordsAndAnswersByScript) {
    WebhookReceiver receiver;
    receiver.script({{.status = 500}, {.drop = true}, {.status = 202, .body = "ok"}});
    Http http("");
    net::Headers headers;
    headers.set("X-Signature", "abc");
    EXPECT_EQ(http.post(receiver.url(), R"({"n": 1})", headers).status, 500);
    EXPECT_EQ(http.post(receiver.url(), "2").status, 0);
    EXPECT_EQ(http.post(receiver.url(), "3").body, "ok");
    EXPECT_EQ(http.post(receiver.url(), "4").status, 200);
    ASSERT_TRUE(receiver.wait_for(4));
    const auto requests = receiver.requests();
    EXPECT_EQ(requests[0].headers.get("x-signature"), "abc");
    EXPECT_EQ(requests[0].json().at("n"), json::value(1));
    EXPECT_EQ(requests[3].body, "4");
}

Task<> send_events(net::Exchange& exchange) {
    net::Response head;
    head.headers.set("Content-Type", "text/event-stream");
    co_await exchange.begin_stream(std::move(head));
    co_await exchange.write_stream(": hello\n\nid: 1\nevent: status\ndata: {\"a\":");
    co_await exchange.write_stream(" 1}\n\ndata: two\ndata: lines\n\n");
    // Open until the client has had enough.
    co_await exchange.wait_closed(std::chrono::minutes(5));
}

TEST(Http, ReadsEventStreams) {
    net::IoThread thread("sse");
    thread.start();
    net::Server server({&thread.context()}, {}, send_events);
    const auto endpoint = server.listen({"127.0.0.1", 0});
    ASSERT_TRUE(endpoint);
    {
        Http http("http://" + endpoint->to_string());
        const auto events =
            http.read_events("/", [](const SseEvent& event) { return event.type == "message"; });
        ASSERT_EQ(events.size(), 2U);
        EXPECT_EQ(events[0].id, "1");
        EXPECT_EQ(events[0].type, "status");
        EXPECT_EQ(events[0].json().at("a"), json::value(1));
        EXPECT_EQ(events[1].data, "two\nlines");
    }
    server.stop(Millis(0));
}

TEST(ComfyDoubleProgram, ServesCrashesAndStops) {
    const TempDir directory;
    const std::string journal = directory / "journal";
    Process process({COMFY_DOUBLE, "--count", "2", "--delay-ms", "1", "--journal", journal});
    const auto first = process.wait_for_line("listening on ");
    const auto second = process.wait_for_line("listening on ");
    ASSERT_TRUE(first && second);
    EXPECT_NE(*first, *second);
    Http http(*first);
    EXPECT_EQ(http.get("/system_stats").json_at("/system/comfyui_version"), json::value("0.33.0"));
    const auto reply = http.post(
        "/prompt",
        R"({"prompt": {"1": {"class_type": "PreviewAny", "inputs": {"source": "x", "_fault": "crash_mid_job"}}}})"
    );
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(process.wait(), 9);
    EXPECT_TRUE(read_file(journal).starts_with(
        "start " + std::string(reply.json().at("prompt_id").get_string())
    ));

    Process other({COMFY_DOUBLE, "--listen", "127.0.0.1:0"});
    ASSERT_TRUE(other.wait_for_line("listening on "));
    EXPECT_EQ(other.stop(), 0);
}

}  // namespace
}  // namespace comfyd::support
