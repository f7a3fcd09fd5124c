// Who may do what: two tenants and an operator before one worker.
#include "native_support.hpp"
#include "support/raw_socket.hpp"

namespace comfyd::support {
namespace {

constexpr const char* kAnna = "anna-0123456789abcdef";
constexpr const char* kBert = "bert-0123456789abcdef";
constexpr const char* kBoss = "boss-0123456789abcdef";

class AccessTest : public testing::Test {
protected:
    AccessTest() {
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), DoubleOptions{});
        worker_->start();
        ComfydOptions serve;
        serve.arguments = {"--no-engine", "--worker", worker_->url(), "--set", "fleet.poll_ms=100"};
        serve.environment = {
            {"COMFYD_AUTH_KEYS", std::string("anna=") + kAnna + ",bert=" + kBert + ",boss=" + kBoss
            },
            {"COMFYD_AUTH_OPERATORS", "boss"},
        };
        comfyd_ = std::make_unique<Comfyd>(serve);
        anna_ = client(kAnna);
        bert_ = client(kBert);
        boss_ = client(kBoss);
        EXPECT_TRUE(wait_until([&] {
            return anna_->get("/api/v1/workers/metrics").json_at("/idle_workers") == 1;
        }));
    }
    ~AccessTest() override {
        comfyd_.reset();
        worker_.reset();
        thread_.stop();
    }
    std::unique_ptr<Http> client(const std::string& key) {
        auto made = std::make_unique<Http>(comfyd_->url());
        made->set_header("Authorization", "Bearer " + key);
        return made;
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<Comfyd> comfyd_;
    std::unique_ptr<Http> anna_;
    std::unique_ptr<Http> bert_;
    std::unique_ptr<Http> boss_;
};

TEST_F(AccessTest, OnlyOperatorsAdministerTheFleet) {
    const std::string worker(boss_->get("/admin/v1/workers").json_at("/workers/0/id").as_string());
    const std::string drain = "/admin/v1/workers/" + worker + "/drain";
    const Reply refused = anna_->post(drain, "");
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(refused.json_at("/error/code"), "forbidden");
    EXPECT_EQ(anna_->get("/admin/v1/workers").status, 403);
    EXPECT_EQ(anna_->post("/admin/v1/workers/" + worker + "/resume", "").status, 403);
    EXPECT_EQ(anna_->get("/metrics").status, 403);
    for (const char* path : {"/free", "/api/free"}) {
        EXPECT_EQ(anna_->post(path, R"({"unload_models": true})").status, 403) << path;
        EXPECT_EQ(boss_->post(path, R"({"unload_models": true})").status, 200) << path;
    }
    EXPECT_EQ(boss_->get("/admin/v1/workers").json_at("/workers/0/status"), "idle");
    EXPECT_EQ(boss_->get("/metrics").status, 200);
    EXPECT_EQ(boss_->post(drain, "").json_at("/status"), "draining");
}

TEST_F(AccessTest, TenantsTouchAndSeeOnlyTheirOwnPrompts) {
    const std::string running = post_prompt(*anna_, text_to_image("a", "hang_interruptible"), "");
    ASSERT_TRUE(wait_until([&] {
        return anna_->get("/api/v1/workers").json_at("/workers/0/status") == "running";
    }));
    const std::string waiting = post_prompt(*anna_, text_to_image("b"), "");
    EXPECT_EQ(bert_->post("/interrupt", "").status, 200);
    EXPECT_EQ(bert_->post_json("/interrupt", json::object{{"prompt_id", running}}).status, 200);
    EXPECT_EQ(
        bert_->post_json("/queue", json::object{{"delete", json::array{waiting}}}).status, 200
    );
    EXPECT_EQ(bert_->post_json("/queue", json::object{{"clear", true}}).status, 200);
    EXPECT_EQ(bert_->get("/queue").json_at("/queue_running"), json::value(json::array()));
    const json::value queue = anna_->get("/queue").json();
    EXPECT_EQ(queue.at("queue_running").at(0).at(1), json::value(running));
    EXPECT_EQ(queue.at("queue_pending").at(0).at(1), json::value(waiting));

    const auto current_of = [](Http& who) {
        return std::string(
            who.get("/api/v1/workers").json_at("/workers/0/current_task_id").as_string()
        );
    };
    EXPECT_EQ(current_of(*anna_), running);
    EXPECT_EQ(current_of(*bert_), "");
    EXPECT_EQ(current_of(*boss_), running);
    for (const char* path :
         {"/api/v1/workers",
          "/system_stats",
          "/queue",
          "/history",
          "/api/jobs",
          "/prompt",
          "/internal/logs",
          "/internal/logs/raw",
          "/internal/folder_paths",
          "/internal/files/output",
          "/v2/stats?group_by=tenant",
          "/health",
          "/api/v1/queue/metrics"}) {
        const std::string shown = bert_->get(path).body;
        EXPECT_EQ(shown.find(running), std::string::npos) << path;
        EXPECT_EQ(shown.find(waiting), std::string::npos) << path;
        EXPECT_EQ(shown.find("anna"), std::string::npos) << path;
    }
    EXPECT_EQ(anna_->post("/interrupt", "").status, 200);
}

TEST_F(AccessTest, PagesOpenStreamsWithATicket) {
    const std::string id(
        anna_->post_json("/v2/workflows/execute", json::object{{"workflow", text_to_image("a")}})
            .json_at("/execution_id")
            .as_string()
    );
    const std::string ticket(anna_->post("/v2/stream-tickets", "").json_at("/ticket").as_string());
    Http page(comfyd_->url());
    const std::string socket = "/v2/workflows/execution/" + id + "/ws";
    const std::string events = "/v2/workflows/execution/" + id + "/events";
    EXPECT_FALSE(page.ws(socket)->connected());
    EXPECT_FALSE(page.ws(socket + "?token=" + kAnna)->connected());
    EXPECT_TRUE(page.ws(socket + "?ticket=" + ticket)->connected());
    EXPECT_TRUE(page.ws("/ws?clientId=x&ticket=" + ticket)->connected());
    EXPECT_EQ(page.get(events).status, 401);
    EXPECT_EQ(page.get(events + "?ticket=" + ticket).status, 200);
    EXPECT_EQ(page.get("/view?filename=a.png&ticket=" + ticket).status, 401);
    EXPECT_EQ(page.get("/queue?ticket=" + ticket).status, 401);
    EXPECT_EQ(comfyd_->log().find(ticket), std::string::npos);
    EXPECT_EQ(comfyd_->log().find(kAnna), std::string::npos);
}

TEST_F(AccessTest, APageShowsItsKeyAsAProtocolOfAWebSocket) {
    const auto ask = [this](const std::string& protocols, const std::string& target) {
        RawSocket socket(comfyd_->url());
        socket.send(
            "GET " + target +
            " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Protocol: " +
            protocols + "\r\n\r\n"
        );
        return socket.read_until("\r\n\r\n");
    };
    const std::string key = std::string("bearer.") + kAnna;
    const std::string opened = ask("comfyd.v1, " + key, "/ws?clientId=x");
    EXPECT_THAT(opened, testing::StartsWith("HTTP/1.1 101 "));
    EXPECT_THAT(opened, testing::HasSubstr("Sec-WebSocket-Protocol: comfyd.v1\r\n"));
    EXPECT_THAT(opened, testing::Not(testing::HasSubstr(kAnna)));
    EXPECT_THAT(
        ask("comfyd.v1, bearer.wrong", "/ws?clientId=x"), testing::StartsWith("HTTP/1.1 401 ")
    );
    EXPECT_THAT(ask("comfyd.v1", "/ws?clientId=x"), testing::StartsWith("HTTP/1.1 401 "));
    EXPECT_THAT(ask("comfyd.v1, " + key, "/queue"), testing::StartsWith("HTTP/1.1 401 "))
        << "for streams alone";
    EXPECT_EQ(comfyd_->log().find(kAnna), std::string::npos);
}

TEST_F(AccessTest, PagesOfOtherOriginsNeedMoreThanAKey) {
    const auto from = [](const std::string& origin) {
        net::Headers headers;
        headers.set("Origin", origin);
        return headers;
    };
    const json::object job{{"workflow", text_to_image("a")}};
    EXPECT_EQ(anna_->post_json("/api/v2/jobs", job, from("https://evil.example")).status, 403);
    EXPECT_EQ(anna_->post_json("/api/v2/jobs", job, from("null")).status, 403);
    EXPECT_EQ(anna_->post_json("/api/v2/jobs", job, from(comfyd_->url())).status, 201);
    EXPECT_FALSE(anna_->ws("/ws?clientId=x", from("https://evil.example"))->connected());
    EXPECT_TRUE(anna_->ws("/ws?clientId=x", from(comfyd_->url()))->connected());
    const Reply read = anna_->get("/api/v2/jobs", from("https://evil.example"));
    EXPECT_EQ(read.status, 200);
    EXPECT_FALSE(read.headers.contains("Access-Control-Allow-Origin")) << "its page sees nothing";
}

TEST_F(AccessTest, EveryAnswerTellsBrowsersToKeepItToItsOwnPages) {
    for (const char* path : {"/", "/api/v2/jobs", "/nothing", "/login"}) {
        const Reply answer = anna_->get(path);
        EXPECT_EQ(answer.headers.get("X-Content-Type-Options"), "nosniff") << path;
        EXPECT_EQ(answer.headers.get("Cross-Origin-Resource-Policy"), "same-origin") << path;
        EXPECT_EQ(answer.headers.get("Cross-Origin-Opener-Policy"), "same-origin") << path;
    }
}

// A site whose name was made to resolve to 127.0.0.1.
TEST(Hosts, OfOtherSitesAreRefusedOnLoopback) {
    Comfyd comfyd(ComfydOptions{.arguments = {"--set", "hosts=gpu.example"}});
    const auto ask = [&comfyd](const std::string& request, const std::string& host) {
        RawSocket socket(comfyd.url());
        socket.send(
            request + " HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" + host +
            "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 0\r\n\r\n"
        );
        return socket.read_until("\r\n\r\n").substr(9, 3);
    };
    EXPECT_EQ(ask("GET /ws?clientId=x", "evil.example"), "421");
    EXPECT_EQ(ask("GET /queue", "evil.example:8080"), "421");
    EXPECT_EQ(ask("POST /interrupt", "evil.example"), "421");
    EXPECT_EQ(ask("GET /nothing", "evil.example"), "421");
    EXPECT_EQ(ask("GET /ws?clientId=x", "localhost:8080"), "101");
    EXPECT_EQ(ask("GET /ws?clientId=x", "gpu.example"), "101");
}

}  // namespace
}  // namespace comfyd::support
