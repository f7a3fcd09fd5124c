// The routes of the execution and task dialects, over real sockets.
#include <gtest/gtest.h>

#include <future>

#include "api/dialects/workflows/workflows.hpp"
#include "api/test_support.hpp"

namespace comfyd::api {
namespace {

using test::header;
using test::parse;
using test::ScriptedWorker;
using test::TestApi;

constexpr const char* kWorkflow =
    R"({"workflow": {"1": {"class_type": "EmptyImage", "inputs": {"width": 8}},
                     "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}})";
constexpr const char* kTask =
    R"({"workflow_id": "w", "payload": {"1": {"class_type": "SaveImage", "inputs": {}}}})";

std::string text_of(const json::object& from, std::string_view key) {
    return std::string(from.at(key).as_string());
}

std::string submit(TestApi& api) {
    const auto response = api.post("/v2/workflows/execute", kWorkflow);
    EXPECT_EQ(response.status, 202) << response.body;
    return text_of(parse(response.body), "execution_id");
}

std::string execution(std::string_view id, std::string_view rest = "") {
    return "/v2/workflows/execution/" + std::string(id) + std::string(rest);
}

// The "data" of every frame, and "close".
std::vector<json::object> frames_of(std::string_view body) {
    std::vector<json::object> frames;
    while (!body.empty()) {
        const std::size_t end = std::min(body.find("\n\n"), body.size());
        const std::string_view frame = body.substr(0, end);
        body.remove_prefix(std::min(end + 2, body.size()));
        const std::size_t data = frame.find("data: ");
        if (frame.starts_with(":") || data == std::string_view::npos) {
            continue;
        }
        json::object parsed = parse(std::string(frame.substr(data + 6)));
        if (frame.starts_with("event: close")) {
            parsed["type"] = "close";
        } else {
            EXPECT_TRUE(frame.starts_with("id: ")) << frame;
        }
        frames.push_back(std::move(parsed));
    }
    return frames;
}

std::string type_of(const json::object& message) {
    const json::value* type = json::find(message, "type");
    return type == nullptr ? std::string() : std::string(type->as_string());
}

// Everything that a socket says until it closes; `say` is sent after the first message.
struct Heard {
    std::vector<json::object> messages;
    std::vector<std::string> binary;
    Code end = Code::internal;
};
Task<Heard> listen(net::Client& client, std::string url, std::vector<std::string> say) {
    Heard heard;
    auto socket = co_await client.connect(std::move(url), {}, Millis(10'000));
    if (!socket) {
        heard.end = socket.error().code;
        co_return heard;
    }
    for (;;) {
        auto message = co_await (*socket)->read();
        if (!message) {
            heard.end = message.error().code;
            co_return heard;
        }
        if (message->binary) {
            heard.binary.push_back(std::move(message->data));
            continue;
        }
        heard.messages.push_back(parse(message->data));
        for (std::string& text : std::exchange(say, {})) {
            auto written = co_await (*socket)->write(std::move(text), false);
            EXPECT_TRUE(written.has_value());
        }
    }
}

// A client that hears the first message and is gone.
Task<bool> connect_and_leave(net::Client& client, std::string url) {
    auto socket = co_await client.connect(std::move(url), {}, Millis(10'000));
    if (!socket) {
        co_return false;
    }
    auto message = co_await (*socket)->read();
    (*socket)->abort();
    co_return message.has_value();
}

class SocketTest : public ::testing::Test {
protected:
    ~SocketTest() override { loop_.run(close(client_)); }
    std::future<Heard> start(TestApi& api, std::string path, std::vector<std::string> say = {}) {
        return loop_.start(listen(client_, socket_url(api, path), std::move(say)));
    }
    Heard hear(TestApi& api, std::string path, std::vector<std::string> say = {}) {
        return loop_.run(listen(client_, socket_url(api, path), std::move(say)));
    }
    static std::string socket_url(TestApi& api, const std::string& path) {
        return "ws://127.0.0.1:" + std::to_string(api.port) + path;
    }
    static Task<bool> close(net::Client& client) {
        client.close_idle();
        co_return true;
    }

    net::test::Loop loop_;
    net::Client client_{loop_.executor(), {}};
};

TEST(WorkflowsRoutes, AnExecutionFromSubmitToResult) {
    TestApi api;
    const auto submitted = api.post("/v1/workflows/execute", kWorkflow);
    EXPECT_EQ(submitted.status, 202);
    EXPECT_EQ(submitted.headers.get("X-API-Version"), "1.0");
    EXPECT_EQ(submitted.headers.get("Deprecation"), "true");
    EXPECT_EQ(submitted.headers.get("Link"), "</v2/workflows/execute>; rel=\"successor-version\"");
    const auto queued = parse(submitted.body);
    EXPECT_EQ(text_of(queued, "status"), "queued");
    const std::string id = text_of(queued, "execution_id");
    EXPECT_EQ(submitted.headers.get("Location"), "/v1/workflows/execution/" + id);
    api.open_worker();
    const auto completed = api.wait_for_status(execution(id), "completed");
    EXPECT_EQ(completed.at("result").at("outputs").as_array().size(), 1U);
    const auto metrics = api.get(execution(id, "/metrics"));
    EXPECT_EQ(metrics.status, 200);
    EXPECT_EQ(metrics.headers.get("X-API-Version"), "2.0");
    EXPECT_TRUE(parse(metrics.body).at("quality").at("success").as_bool());
    const auto listed = parse(api.get("/v2/workflows/executions?status=completed").body);
    EXPECT_EQ(listed.at("count"), 1U);
    EXPECT_EQ(listed.at("executions").as_array().at(0).at("execution_id"), json::value(id));
    EXPECT_EQ(parse(api.get("/v2/workflows/executions?status=queued").body).at("count"), 0U);
}

TEST(WorkflowsRoutes, TheSameKeyAnswersWithTheSameExecution) {
    TestApi api;
    const auto first = api.post("/v2/workflows/execute", kWorkflow, header("Idempotency-Key", "k"));
    const auto again = api.post("/v2/workflows/execute", kWorkflow, header("Idempotency-Key", "k"));
    EXPECT_EQ(again.status, 202);
    EXPECT_EQ(first.headers.get("Idempotency-Replayed"), "");
    EXPECT_EQ(again.headers.get("Idempotency-Replayed"), "true");
    EXPECT_EQ(
        text_of(parse(first.body), "execution_id"), text_of(parse(again.body), "execution_id")
    );
    const auto other = api.post(
        "/v2/workflows/execute",
        R"({"workflow": {"1": {"class_type": "SaveImage"}}})",
        header("Idempotency-Key", "k")
    );
    EXPECT_EQ(other.status, 422);
    EXPECT_EQ(test::error_code(other), "idempotency_key_reuse");
}

TEST(WorkflowsRoutes, CancelAndRetry) {
    TestApi api;
    const std::string id = submit(api);
    EXPECT_EQ(api.post(execution(id, "/retry"), "").status, 409);
    const auto cancelled = api.post(execution(id, "/cancel"), "");
    EXPECT_EQ(cancelled.status, 200);
    EXPECT_EQ(text_of(parse(cancelled.body), "status"), "cancelled");
    const auto retried = api.post(execution(id, "/retry"), "");
    EXPECT_EQ(retried.status, 202);
    EXPECT_EQ(text_of(parse(retried.body), "status"), "queued");
    EXPECT_EQ(text_of(parse(api.send("DELETE", execution(id)).body), "status"), "cancelled");
    EXPECT_EQ(api.get(execution(id)).status, 200) << "the record of a cancelled one stays";
}

TEST(WorkflowsRoutes, AnExecutionThatHasEndedIsDeleted) {
    TestApi api;
    const std::string id = submit(api);
    api.post(execution(id, "/cancel"), "");
    const auto deleted = api.send("DELETE", execution(id));
    EXPECT_EQ(deleted.status, 200);
    EXPECT_EQ(text_of(parse(deleted.body), "status"), "cancelled") << "as it was";
    EXPECT_EQ(api.get(execution(id)).status, 404);
    EXPECT_EQ(api.send("DELETE", execution(id)).status, 404);
}

TEST(WorkflowsRoutes, ExplainsWhyAnExecutionWaits) {
    TestApi api;
    submit(api);
    const std::string id = submit(api);
    const auto response = api.get(execution(id, "/explain"));
    EXPECT_EQ(response.status, 200) << response.body;
    const auto waiting = parse(response.body);
    EXPECT_EQ(text_of(waiting, "execution_id"), id);
    EXPECT_EQ(waiting.at("queue_position"), 2U);
    EXPECT_EQ(text_of(waiting, "class"), "medium");
    EXPECT_EQ(waiting.at("workers_capable"), 0U);
    EXPECT_EQ(waiting.at("workers").as_array().size(), 1U);
    EXPECT_FALSE(waiting.at("reasons").as_array().empty());
    api.open_worker();
    api.wait_for_status(execution(id), "completed");
    const auto ended = parse(api.get(execution(id, "/explain")).body);
    EXPECT_EQ(text_of(ended, "state"), "completed");
    EXPECT_FALSE(ended.contains("queue_position"));
}

TEST(WorkflowsRoutes, RefusalsHaveShapeStatusAndVersion) {
    TestApi api;
    const auto bad = api.post("/v1/workflows/execute", "{");
    EXPECT_EQ(bad.status, 400);
    EXPECT_EQ(bad.headers.get("X-API-Version"), "1.0");
    EXPECT_EQ(parse(bad.body).at("error").at("category"), "validation_error");
    const auto invalid = api.post("/v2/workflows/execute", R"({"workflow": {"1": {}}})");
    EXPECT_EQ(invalid.status, 400);
    EXPECT_EQ(test::error_code(invalid), "invalid_workflow");
    EXPECT_EQ(
        api.post("/v2/workflows/execute", R"({"workflow": {"1": {}}, "priority": 11})").status, 400
    );
    EXPECT_EQ(api.get("/v2/workflows/executions?limit=0").status, 400);
    const std::string unknown = JobId::make(api.clock.now()).to_string();
    for (const char* rest : {"", "/metrics", "/explain", "/events", "/ws"}) {
        EXPECT_EQ(api.get(execution(unknown, rest)).status, 404) << rest;
        EXPECT_EQ(api.get(execution("nonsense", rest)).status, 404) << rest;
    }
    EXPECT_EQ(api.post(execution(unknown, "/cancel"), "").status, 404);
    EXPECT_EQ(api.post(execution("x", "/retry"), "").status, 404);
    const std::string id = submit(api);
    EXPECT_EQ(api.get(execution(id, "/ws")).status, 426);
    EXPECT_EQ(api.get(execution(id, "/ws?since=x")).status, 400);
    EXPECT_EQ(api.get(execution(id, "/events"), header("Last-Event-ID", "x")).status, 400);
    EXPECT_EQ(
        api.get(execution(id, "/events"), header("Last-Event-ID", "99999999999")).status, 400
    );
    api.wait_until_no_stream();
}

TEST(WorkflowsRoutes, EventsOpenWithTheStateAndClose) {
    TestApi api;
    const std::string id = submit(api);
    api.open_worker();
    const auto response = api.get(execution(id, "/events"));
    EXPECT_EQ(response.headers.get("Content-Type"), "text/event-stream");
    EXPECT_EQ(response.headers.get("X-Accel-Buffering"), "no");
    EXPECT_EQ(response.headers.get("X-API-Version"), "2.0");
    const auto frames = frames_of(response.body);
    ASSERT_GE(frames.size(), 3U);
    EXPECT_EQ(frames.front().at("execution_id"), json::value(id));
    EXPECT_TRUE(frames.front().contains("webhook_delivered"));
    EXPECT_EQ(type_of(frames.back()), "close");
    const json::object& last = frames.at(frames.size() - 2);
    EXPECT_EQ(type_of(last), "completed");
    EXPECT_EQ(last.at("result").at("outputs").as_array().size(), 1U);
    EXPECT_TRUE(last.at("execution_time").is_double());
    for (std::size_t index = 2; index + 1 < frames.size(); ++index) {
        EXPECT_GT(
            frames[index].at("sequence").as_int64(), frames[index - 1].at("sequence").as_int64()
        );
    }

    const auto resumed =
        frames_of(api.get(execution(id, "/events"), header("Last-Event-ID", "1")).body);
    ASSERT_EQ(resumed.size(), 3U) << "started, completed, close";
    EXPECT_EQ(resumed[0].at("status"), "processing");
    const std::string seen = std::to_string(last.at("sequence").as_int64());
    const auto over =
        frames_of(api.get(execution(id, "/events"), header("Last-Event-ID", seen)).body);
    ASSERT_EQ(over.size(), 1U);
    EXPECT_EQ(type_of(over[0]), "close");
}

TEST(WorkflowsRoutes, TheHistoryOfARevivedJobIsToldToItsRealEnd) {
    TestApi api;
    const std::string id = submit(api);
    api.post(execution(id, "/cancel"), "");
    api.post(execution(id, "/retry"), "");
    api.open_worker();
    api.wait_for_status(execution(id), "completed");
    const auto told =
        frames_of(api.get(execution(id, "/events"), header("Last-Event-ID", "1")).body);
    std::vector<std::string> story;
    for (std::size_t i = 0; i + 1 < told.size(); ++i) {
        const std::string status(told[i].at("status").as_string());
        if (story.empty() || story.back() != status) {
            story.push_back(status);
        }
    }
    EXPECT_EQ(story, (std::vector<std::string>{"cancelled", "queued", "processing", "completed"}));
    EXPECT_EQ(type_of(told.back()), "close");
}

TEST_F(SocketTest, TellsTheWholeStoryAndCloses) {
    TestApi api;
    const std::string id = submit(api);
    auto future = start(
        api, execution(id, "/ws?previews=1"), {R"({"type":"ping"})", "nonsense", R"({"type":"?"})"}
    );
    while (api.services.streams->load() == 0) {
        std::this_thread::yield();
    }
    api.open_worker();
    const Heard heard = net::test::get(future);
    EXPECT_EQ(heard.end, Code::connection_failed);
    ASSERT_GE(heard.messages.size(), 2U);
    EXPECT_EQ(type_of(heard.messages.front()), "state");
    EXPECT_EQ(text_of(heard.messages.front(), "execution_id"), id);
    EXPECT_EQ(type_of(heard.messages.back()), "completed");
    EXPECT_EQ(heard.messages.back().at("result").at("outputs").as_array().size(), 1U);
}

TEST_F(SocketTest, AnswersClientsAndCancels) {
    TestApi api;
    const std::string id = submit(api);
    const Heard heard = hear(
        api,
        execution(id, "/ws"),
        {R"({"type":"ping"})", "nonsense", R"({"type":"stop"})", R"({"type":"cancel"})"}
    );
    ASSERT_EQ(heard.messages.size(), 5U);
    EXPECT_EQ(type_of(heard.messages[0]), "state");
    EXPECT_EQ(type_of(heard.messages[1]), "pong");
    EXPECT_EQ(heard.messages[2].at("error").at("code"), "malformed_json");
    EXPECT_EQ(heard.messages[3].at("error").at("code"), "invalid_argument");
    EXPECT_EQ(type_of(heard.messages[4]), "status_change");
    EXPECT_EQ(text_of(heard.messages[4], "status"), "cancelled");
}

TEST_F(SocketTest, CancelsARunningExecution) {
    TestApi api;
    const std::string id = submit(api);
    api.open_worker(ScriptedWorker::Script::wait_for_stop);
    api.wait_for_status(execution(id), "processing");
    const Heard heard = hear(api, execution(id, "/ws"), {R"({"type":"cancel"})"});
    ASSERT_GE(heard.messages.size(), 2U);
    EXPECT_EQ(text_of(heard.messages.back(), "status"), "cancelled");
}

TEST_F(SocketTest, ResumesWithoutState) {
    TestApi api;
    const std::string id = submit(api);
    api.open_worker(ScriptedWorker::Script::fail);
    api.wait_for_status(execution(id), "failed");
    const Heard all = hear(api, execution(id, "/ws?since=0"));
    ASSERT_EQ(all.messages.size(), 3U) << "queued, started, failed";
    EXPECT_EQ(type_of(all.messages[0]), "status_change");
    EXPECT_EQ(type_of(all.messages[2]), "error");
    EXPECT_EQ(all.messages[2].at("error").at("node_id"), "3");
    EXPECT_EQ(all.messages[2].at("error").at("category"), "execution_error");
    const auto last = std::to_string(all.messages[2].at("sequence").as_int64());
    EXPECT_TRUE(hear(api, execution(id, "/ws?since=" + last)).messages.empty());
    const Heard now = hear(api, execution(id, "/ws"));
    ASSERT_EQ(now.messages.size(), 2U) << "state, error";
    EXPECT_EQ(text_of(now.messages[0], "status"), "failed");
    EXPECT_EQ(type_of(now.messages[1]), "error");
}

TEST_F(SocketTest, AClientThatLeavesLeavesNothingBehind) {
    TestApi api;
    const std::string id = submit(api);
    EXPECT_TRUE(loop_.run(connect_and_leave(client_, socket_url(api, execution(id, "/ws")))));
    api.wait_until_no_stream();
    EXPECT_EQ(text_of(parse(api.get(execution(id)).body), "status"), "queued");
}

TEST_F(SocketTest, TooManyStreamsAreRefused) {
    test::Arrangement setup;
    setup.options.streams_max = 0;
    TestApi api(std::move(setup));
    const std::string id = submit(api);
    EXPECT_EQ(api.get(execution(id, "/events")).status, 429);
    EXPECT_EQ(api.get(execution(id, "/ws")).status, 429);
}

TEST(ComfyuiExecuteRoutes, AnExecutionFromSubmitToResult) {
    TestApi api;
    const auto accepted = api.post(
        "/comfyui/execute",
        R"({"workflow": {"nodes": {"1": {"class_type": "EmptyImage"}, "2": {"class_type": "SaveImage"}},
                         "links": [["1", 0, "2", "images"]]}})",
        header("X-Webhook-URL", "https://1.1.1.1/hook")
    );
    EXPECT_EQ(accepted.status, 202) << accepted.body;
    const auto body = parse(accepted.body);
    EXPECT_EQ(text_of(body, "status"), "accepted");
    EXPECT_EQ(text_of(body, "webhook_url"), "https://1.1.1.1/hook");
    const std::string id = text_of(body, "execution_id");
    EXPECT_EQ(
        parse(api.ledger.spec(*JobId::parse(id)).workflow).at("2").at("inputs").at("images"),
        (json::value{"1", 0})
    );
    const std::string path = "/comfyui/execution/" + id;
    EXPECT_EQ(text_of(parse(api.get(path).body), "status"), "queued");
    EXPECT_EQ(parse(api.get("/comfyui/executions").body).at("count"), 1U);
    api.open_worker(ScriptedWorker::Script::fail);
    const auto frames = frames_of(api.get(path + "/events").body);
    ASSERT_GE(frames.size(), 2U);
    EXPECT_EQ(frames.at(frames.size() - 2).at("error").at("error_code"), "NODE_EXECUTION_ERROR");
    const auto failed = parse(api.get(path).body);
    EXPECT_EQ(text_of(failed, "status"), "failed");
    EXPECT_EQ(failed.at("error").at("error_code"), "NODE_EXECUTION_ERROR");
    EXPECT_EQ(api.post(path + "/cancel", "").status, 200);
}

TEST(ComfyuiExecuteRoutes, Refusals) {
    TestApi api;
    const auto invalid = api.post("/comfyui/execute", R"({"workflow": {"1": {"class_type": 3}}})");
    EXPECT_EQ(invalid.status, 400);
    const auto body = parse(invalid.body);
    EXPECT_EQ(text_of(body, "status"), "error");
    EXPECT_EQ(text_of(body, "error_code"), "INVALID_WORKFLOW");
    EXPECT_TRUE(body.at("details").at("missing_nodes").is_array());
    EXPECT_TRUE(body.at("details").at("invalid_connections").is_array());
    EXPECT_EQ(api.post("/comfyui/execute", "[]").status, 400);
    EXPECT_EQ(api.get("/comfyui/execution/x").status, 404);
    EXPECT_EQ(api.get("/comfyui/execution/x/events").status, 404);
    EXPECT_EQ(api.post("/comfyui/execution/x/cancel", "").status, 404);
    EXPECT_EQ(api.get("/comfyui/executions?status=x").status, 400);
}

TEST(TasksRoutes, ATaskFromSubmitToResult) {
    TestApi api;
    const auto created = api.post("/api/v1/tasks", kTask);
    EXPECT_EQ(created.status, 201) << created.body;
    const auto task = parse(created.body);
    EXPECT_EQ(text_of(task, "status"), "pending");
    EXPECT_EQ(text_of(task, "workflow_id"), "w");
    EXPECT_EQ(task.at("max_retries"), 3);
    const std::string path = "/api/v1/tasks/" + text_of(task, "id");
    EXPECT_EQ(parse(api.get(path).body).at("payload").at("1").at("class_type"), "SaveImage");
    EXPECT_EQ(parse(api.get("/api/v1/tasks?status=pending").body).at("count"), 1U);
    api.open_worker();
    const auto frames = frames_of(api.get(path + "/events").body);
    ASSERT_GE(frames.size(), 2U);
    EXPECT_EQ(text_of(frames.at(frames.size() - 2), "task_id"), text_of(task, "id"));
    const auto completed = parse(api.get(path).body);
    EXPECT_EQ(text_of(completed, "status"), "completed");
    EXPECT_EQ(completed.at("result").at("outputs").as_array().size(), 1U);
    EXPECT_EQ(text_of(completed, "worker_id"), "scripted");
}

TEST(TasksRoutes, ADeletedTaskStaysReadable) {
    TestApi api;
    const std::string path =
        "/api/v1/tasks/" + text_of(parse(api.post("/api/v1/tasks", kTask).body), "id");
    const auto deleted = api.send("DELETE", path);
    EXPECT_EQ(deleted.status, 200);
    EXPECT_EQ(text_of(parse(deleted.body), "status"), "cancelled");
    EXPECT_EQ(text_of(parse(api.get(path).body), "status"), "cancelled");
    EXPECT_EQ(api.post(path + "/cancel", "").status, 200);
}

TEST(TasksRoutes, Refusals) {
    TestApi api;
    const auto missing = api.get("/api/v1/tasks/x");
    EXPECT_EQ(missing.status, 404);
    EXPECT_TRUE(parse(missing.body).at("error").is_string());
    EXPECT_EQ(api.post("/api/v1/tasks", "{}").status, 400);
    EXPECT_EQ(api.post("/api/v1/tasks", R"({"payload": {"1": {}}})").status, 400);
    EXPECT_EQ(api.get("/api/v1/tasks?status=queued").status, 400);
    EXPECT_EQ(api.get("/api/v1/tasks/x/events").status, 404);
    EXPECT_EQ(api.send("DELETE", "/api/v1/tasks/x").status, 404);
}

TEST(TasksRoutes, WorkersQueueAndHealth) {
    TestApi api;
    const auto workers = parse(api.get("/api/v1/workers").body);
    EXPECT_EQ(workers.at("count"), 1U);
    EXPECT_EQ(workers.at("workers").as_array().at(0).at("id"), "scripted");
    EXPECT_EQ(api.get("/api/v1/workers/scripted").status, 200);
    EXPECT_EQ(api.get("/api/v1/workers/other").status, 404);
    EXPECT_EQ(parse(api.get("/api/v1/workers/metrics").body).at("total_workers"), 1U);
    EXPECT_TRUE(parse(api.get("/api/v1/queue/metrics").body).contains("pending_tasks"));
    const auto healthy = parse(api.get("/health").body);
    EXPECT_EQ(text_of(healthy, "status"), "healthy");
    EXPECT_EQ(
        healthy.at("timestamp").as_double(), static_cast<double>(to_unix_ms(api.clock.now())) / 1000
    );
    EXPECT_EQ(api.get("/ready").status, 200);
    api.on_core([&api] { api.fleet.worker->down = true; });
    const auto unhealthy = api.get("/health");
    EXPECT_EQ(unhealthy.status, 503);
    EXPECT_EQ(text_of(parse(unhealthy.body), "status"), "unhealthy");
    EXPECT_EQ(text_of(parse(unhealthy.body), "error"), "no worker is up");
    EXPECT_EQ(text_of(parse(api.get("/ready").body), "error"), "no worker takes jobs");
    api.ready = false;
    const auto unready = api.get("/ready");
    EXPECT_EQ(unready.status, 503);
    EXPECT_EQ(text_of(parse(unready.body), "error"), "no worker is up");
}

TEST(DialectRoutes, EverythingIsInTheDocument) {
    TestApi api;
    const json::object document = api.router.openapi();
    const json::object& paths = document.at("paths").as_object();
    for (const char* path : {
             "/v1/workflows/execute",
             "/v2/workflows/execution/{id}/ws",
             "/v2/workflows/execution/{id}/metrics",
             "/comfyui/execute",
             "/comfyui/execution/{id}/events",
             "/api/v1/tasks/{id}",
             "/api/v1/workers/metrics",
             "/health",
         }) {
        EXPECT_TRUE(paths.contains(path)) << path;
    }
    const std::string text = json::serialize(document);
    const json::object& schemas = document.at("components").at("schemas").as_object();
    const std::string prefix = "#/components/schemas/";
    for (std::size_t at = text.find(prefix); at != std::string::npos;
         at = text.find(prefix, at + 1)) {
        const std::size_t begin = at + prefix.size();
        const std::string name = text.substr(begin, text.find('"', begin) - begin);
        EXPECT_TRUE(schemas.contains(name)) << name;
    }
}

}  // namespace
}  // namespace comfyd::api
