// `comfyd engine`: clients of ComfyUI, recorded conversations with a real one, and comfyd's own
// fleet, all against the real binary.
#include <gtest/gtest.h>

#include "standalone/test_support.hpp"
#include "support/comfyd.hpp"
#include "support/conversation.hpp"
#include "support/engine_test_nodes.hpp"

namespace comfyd::support {
namespace {

class EngineServer {
public:
    EngineServer() { start(); }

    void start() {
        process_ = std::make_unique<Process>(ProcessOptions{
            .arguments = {COMFYD_BINARY, "engine", "--listen", listen_, "--data", folder_ / "data"}
        });
        const auto url = process_->wait_for_line("listening on ");
        if (!url) {
            throw std::runtime_error("comfyd engine did not start: " + process_->errors());
        }
        url_ = *url;
        listen_ = url_.substr(std::string("http://").size());
        http_ = std::make_unique<Http>(url_);
    }
    void kill() {
        process_->kill(SIGKILL);
        process_->wait();
    }
    int stop() { return process_->stop(); }

    const std::string& url() const { return url_; }
    Http& http() { return *http_; }
    bool is_running() {
        const json::value queue = http().get("/queue").json();
        const json::object* lists = queue.if_object();
        return lists != nullptr && !lists->at("queue_running").as_array().empty();
    }
    std::size_t ended() {
        const json::value history = http().get("/history").json();
        return history.is_object() ? history.get_object().size() : 0;
    }

private:
    TempDir folder_;
    std::string listen_ = "127.0.0.1:0";
    std::string url_;
    std::unique_ptr<Process> process_;
    std::unique_ptr<Http> http_;
};

std::string recording(const std::string& name) {
    return std::string(COMFYD_SOURCE) + "/tests/data/conversations/" + name + ".json";
}

class RecordedEngine : public testing::TestWithParam<const char*> {};

TEST_P(RecordedEngine, ConversationIsHeldAsByTheRealServer) {
    EngineServer server;
    Conversation(server.url(), recording(GetParam())).play();
}

// Those that need none of the test nodes of ComfyUI.
INSTANTIATE_TEST_SUITE_P(
    Conversations,
    RecordedEngine,
    testing::Values(
        "09-second-socket-same-client-id",
        "10-preview-image-and-websocket-image",
        "11-feature-flags-preview-metadata",
        "13-list-outputs",
        "14-partial-execution-targets",
        "16-free-and-history",
        "17-validation-failure-sends-no-message"
    ),
    [](const auto& entry) { return "number_" + std::string(entry.param).substr(0, 2); }
);

// The same server, which has them.
class RecordedWithTestNodes : public testing::TestWithParam<const char*> {};

TEST_P(RecordedWithTestNodes, ConversationIsHeldAsByTheRealServer) {
    standalone::Options options;
    options.add_classes = &add_test_nodes;
    standalone::test::TestServer server(options);
    Conversation(server.url(), recording(GetParam())).play();
}

INSTANTIATE_TEST_SUITE_P(
    Conversations,
    RecordedWithTestNodes,
    testing::Values(
        "04-node-error", "12-progress", "18-lazy-and-blocked", "19-node-expansion-loop"
    ),
    [](const auto& entry) { return "number_" + std::string(entry.param).substr(0, 2); }
);

// Each of them goes on where the one before left the cache.
TEST(EngineConversations, AboutCachedResults) {
    EngineServer server;
    for (const char* name : {"01-simple-success", "02-cached-rerun", "03-partly-cached"}) {
        Conversation(server.url(), recording(name)).play();
    }
}

TEST(EngineCommand, RefusesToListenWhereAnybodyCouldReachIt) {
    TempDir folder;
    Process refused({COMFYD_BINARY, "engine", "--listen", "0.0.0.0:0", "--data", folder / "a"});
    EXPECT_EQ(refused.wait(), 2);
    EXPECT_NE(refused.errors().find("--allow-remote"), std::string::npos) << refused.errors();
    Process allowed(
        {COMFYD_BINARY, "engine", "--listen", "0.0.0.0:0", "--allow-remote", "--data", folder / "b"}
    );
    EXPECT_TRUE(allowed.wait_for_line("listening on "));
    EXPECT_EQ(allowed.stop(), 0);
}

TEST(EngineCommand, SaysWhatIsWrong) {
    TempDir folder;
    EXPECT_EQ(Process({COMFYD_BINARY, "engine", "--help"}).wait(), 0);
    EXPECT_EQ(Process({COMFYD_BINARY, "engine", "--listen", "nonsense"}).wait(), 2);
    EXPECT_EQ(Process({COMFYD_BINARY, "engine", "--frontend", folder / "none"}).wait(), 2);
    EngineServer server;
    Process second(
        {COMFYD_BINARY,
         "engine",
         "--listen",
         server.url().substr(std::string("http://").size()),
         "--data",
         folder / "data"}
    );
    EXPECT_EQ(second.wait(), 4) << "the port is taken";
    EXPECT_EQ(server.stop(), 0);
}

#if defined(__has_feature) && (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
constexpr int kPicturesToBlur = 1;  // a sanitized engine is ten times slower
#else
constexpr int kPicturesToBlur = 8;
#endif

// Runs for about a second on an idle machine, `times` that where it must not end by itself, and
// stops at once when it is interrupted.
json::object some_work(int color, int times = 1) {
    json::object graph = *json::parse_object(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 512, "height": 512, "color": 0}},
        "2": {"class_type": "ImageBlur", "inputs": {"image": ["1", 0], "blur_radius": 31, "sigma": 1.0}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0], "filename_prefix": "work"}}})"
    );
    json::object& picture = graph.at("1").as_object().at("inputs").as_object();
    picture["color"] = color;
    picture["batch_size"] = kPicturesToBlur * times;
    return graph;
}

class EngineFleet : public testing::Test {
protected:
    void serve() {
        ComfydOptions options;
        options.arguments = {
            "--no-engine", "--set", "fleet.poll_ms=100", "--set", "fleet.lost_after_s=1"
        };
        for (const auto& server : servers_) {
            options.arguments.insert(options.arguments.end(), {"--worker", server->url()});
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        ASSERT_TRUE(wait_until([this] {
            const json::value workers = comfyd_->http().get("/api/v1/workers/metrics").json();
            return workers.at("idle_workers").as_int64() ==
                   static_cast<std::int64_t>(servers_.size());
        })) << comfyd_->log();
    }
    EngineServer& add() { return *servers_.emplace_back(std::make_unique<EngineServer>()); }

    std::vector<std::unique_ptr<EngineServer>> servers_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_F(EngineFleet, JobsRunOnIt) {
    EngineServer& server = add();
    serve();
    for (int i = 0; i < 5; ++i) {
        const json::value job = comfyd_->wait_finished(comfyd_->submit(small_picture(i)));
        ASSERT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
        const json::array& outputs = job.at("outputs").as_array();
        ASSERT_EQ(outputs.size(), 1U);
        const Reply file =
            comfyd_->http().get("/api/v2/jobs/" + std::string(job.at("id").as_string()));
        EXPECT_EQ(file.status, 200);
    }
    EXPECT_EQ(server.ended(), 5U);
}

TEST_F(EngineFleet, AFailureNamesItsNode) {
    add();
    serve();
    json::object graph = small_picture(1);
    graph["4"] = {
        {"class_type", "ComfyMathExpression"}, {"inputs", {{"expression", "1/0"}, {"values.a", 1}}}
    };
    graph["5"] = {{"class_type", "PreviewAny"}, {"inputs", {{"source", json::array{"4", 0}}}}};
    const json::value job = comfyd_->wait_finished(comfyd_->submit(graph, {{"max_attempts", 1}}));
    EXPECT_EQ(Comfyd::status_of(job), "failed") << json::serialize(job);
    EXPECT_EQ(job.at("error").at("code"), "node_execution_error") << json::serialize(job);
}

TEST_F(EngineFleet, ACancelledJobStopsThere) {
    EngineServer& server = add();
    serve();
    const std::string id = comfyd_->submit(some_work(1, 10));
    ASSERT_TRUE(wait_until([&] { return server.is_running(); }));
    EXPECT_EQ(comfyd_->http().post("/api/v2/jobs/" + id + "/cancel", "").status, 200);
    EXPECT_EQ(Comfyd::status_of(comfyd_->wait_finished(id)), "canceled");
    EXPECT_TRUE(wait_until([&] { return !server.is_running(); }));
    const json::value next = comfyd_->wait_finished(comfyd_->submit(small_picture(1)));
    EXPECT_EQ(Comfyd::status_of(next), "succeeded");
}

TEST_F(EngineFleet, AJobGoesToAnotherWhenItsServerIsKilled) {
    add();
    add();
    serve();
    const std::string id = comfyd_->submit(some_work(2, 3));
    std::size_t victim = 0;
    ASSERT_TRUE(wait_until([&] {
        victim = servers_[0]->is_running() ? 0 : 1;
        return servers_[victim]->is_running();
    }));
    servers_[victim]->kill();
    const json::value job = comfyd_->wait_finished(id, std::chrono::seconds(120));
    EXPECT_EQ(Comfyd::status_of(job), "succeeded") << json::serialize(job) << comfyd_->log();
    EXPECT_EQ(servers_[1 - victim]->ended(), 1U);
    // It comes back under its own address and is used again.
    servers_[victim]->start();
    EXPECT_TRUE(wait_until([this] {
        const json::value workers = comfyd_->http().get("/api/v1/workers/metrics").json();
        return workers.at("idle_workers") == json::value(2);
    })) << comfyd_->log();
}

}  // namespace
}  // namespace comfyd::support
