// `comfyd worker` in front of a ComfyUI: who may use it, what it hands on, what it answers itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "support/agent.hpp"
#include "support/comfyd.hpp"
#include "support/conversation.hpp"
#include "support/raw_socket.hpp"

namespace comfyd {
namespace {

using support::AgentOptions;
using support::AgentProcess;
using support::Http;
using support::Process;
using support::ProcessOptions;
using support::read_file;
using support::Reply;
using support::small_picture;
using support::text_to_image;
using support::wait_until;
using testing::HasSubstr;

bool is_alive(pid_t pid) {
    return pid > 0 && ::kill(pid, 0) == 0;
}

json::object asked(const json::object& prompt, json::object more = {}) {
    more["prompt"] = prompt;
    return more;
}

TEST(Agent, RunsComfyUiWithFoldersOfItsOwnAndNoSecrets) {
    AgentProcess agent(
        {.environment = {{"RUNPOD_API_KEY", "hidden-1"}, {"CUDA_VISIBLE_DEVICES", "GPU-7"}}}
    );
    ASSERT_TRUE(agent.wait_for("ready")) << agent.log();
    const std::string started = read_file(agent.folder() + "/started.json");
    EXPECT_THAT(started, HasSubstr("--output-directory"));
    EXPECT_THAT(started, HasSubstr(agent.folder() + "/output"));
    EXPECT_THAT(started, HasSubstr("sqlite:///" + agent.folder()));
    EXPECT_THAT(started, HasSubstr("\"CUDA_VISIBLE_DEVICES\": \"GPU-7\""));
    EXPECT_THAT(started, testing::Not(HasSubstr("hidden-1")));
    EXPECT_THAT(started, testing::Not(HasSubstr(support::kAgentToken)));
    EXPECT_THAT(read_file(agent.folder() + "/comfyui.log"), HasSubstr("the double starts"));
    // The token is in no place that ComfyUI, a process of the same user, could read.
    EXPECT_THAT(agent.log(), testing::Not(HasSubstr(support::kAgentToken)));

    const json::value status = agent.status();
    EXPECT_EQ(status.at("instance"), "worker");
    EXPECT_EQ(status.at("comfyui").at("restarts"), 0);
    EXPECT_FALSE(status.at("comfyui").at("version").get_string().empty());
    EXPECT_GT(status.at("ram_bytes").to_number<std::int64_t>(), 0);
    EXPECT_GT(status.at("disk_free_bytes").to_number<std::int64_t>(), 0);
    EXPECT_TRUE(status.at("gpus").is_array());

    const json::value told = boost::json::parse(read_file(agent.folder() + "/worker.json"));
    EXPECT_EQ(told.at("pid"), agent.process().pid());
    EXPECT_EQ("http://" + std::string(told.at("listen").get_string()), agent.url());
    EXPECT_GT(told.at("started").to_number<std::int64_t>(), 0);
    const pid_t comfyui = agent.comfyui_pid();
    EXPECT_TRUE(is_alive(comfyui));
    EXPECT_EQ(agent.process().stop(), 0);
    EXPECT_FALSE(is_alive(comfyui));
    EXPECT_FALSE(std::filesystem::exists(agent.folder() + "/worker.json"));
}

TEST(Agent, ComfyUiDoesNotOutliveAnAgentThatIsKilled) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    const pid_t comfyui = agent.comfyui_pid();
    agent.process().kill(SIGKILL);
    agent.process().wait();
    EXPECT_TRUE(wait_until([&] { return !is_alive(comfyui); }));
    agent.start();  // in the same folder
    EXPECT_TRUE(agent.wait_for("ready"));
}

TEST(Agent, OnlyWhoHasTheTokenMayUseIt) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    Http stranger(agent.url());
    EXPECT_EQ(stranger.get("/healthz").status, 200);
    for (const char* path :
         {"/", "/prompt", "/queue", "/health", "/worker/v1/status", "/system_stats", "/api/queue"
         }) {
        const Reply reply = stranger.get(path);
        EXPECT_EQ(reply.status, 401) << path;
        EXPECT_EQ(reply.headers.get("WWW-Authenticate"), "Bearer");
        EXPECT_THAT(reply.body, testing::Not(HasSubstr(support::kAgentToken)));
    }
    EXPECT_EQ(stranger.post_json("/prompt", asked(small_picture())).status, 401);
    EXPECT_EQ(stranger.post_json("/prompt_sync", asked(small_picture())).status, 401);
    EXPECT_EQ(stranger.post("/worker/v1/restart", "").status, 401);
    EXPECT_FALSE(stranger.ws("/ws?clientId=x")->connected());
    const std::string token = support::kAgentToken;
    for (const std::string& wrong :
         {"Bearer " + token + "x",
          "Bearer " + token.substr(1),
          "Basic " + token,
          std::string("Bearer "),
          token,
          std::string("Bearer \xff\xfe")}) {
        net::Headers headers;
        headers.set("Authorization", wrong);
        EXPECT_EQ(stranger.get("/queue", headers).status, 401) << wrong;
    }
    EXPECT_EQ(agent.http().get("/queue").status, 200);
    // Nothing of all that reached ComfyUI.
    EXPECT_EQ(agent.http().get("/history").json(), json::object());
}

TEST(Agent, IsNotOpenToTheWorldByMistake) {
    Process open({.arguments = {COMFYD_BINARY, "worker", "--listen", "0.0.0.0:0"}});
    EXPECT_EQ(open.wait(), 2);
    EXPECT_THAT(open.errors() + open.output(), HasSubstr("COMFYD_WORKER_TOKEN"));
    Process weak(ProcessOptions{
        .arguments = {COMFYD_BINARY, "worker", "--listen", "127.0.0.1:0"},
        .environment = {{"COMFYD_WORKER_TOKEN", "short"}}
    });
    EXPECT_EQ(weak.wait(), 2);
    // On loopback without a token a page of another site gets nothing.
    AgentProcess local({.token = ""});
    ASSERT_TRUE(local.wait_for("ready"));
    net::Headers foreign;
    foreign.set("Origin", "https://evil.example");
    EXPECT_EQ(local.http().get("/queue", foreign).status, 403);
    support::RawSocket rebound(local.url());  // a name of its own that leads to 127.0.0.1
    rebound.send("GET /queue HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n"
    );
    EXPECT_THAT(rebound.read_until("\r\n"), HasSubstr(" 403"));
    EXPECT_EQ(local.http().get("/queue").status, 200);
}

class AgentConversation : public testing::TestWithParam<const char*> {};

// Held through the agent as with the real server.
TEST_P(AgentConversation, IsUnchanged) {
    AgentProcess agent({.token = ""});
    ASSERT_TRUE(agent.wait_for("ready"));
    support::Conversation(
        agent.url(), std::string(COMFYD_SOURCE) + "/tests/data/conversations/" + GetParam()
    )
        .play();
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    AgentConversation,
    testing::Values(
        "01-simple-success.json",
        "05-interrupt-running.json",
        "06-delete-from-queue.json",
        "10-preview-image-and-websocket-image.json",
        "11-feature-flags-preview-metadata.json",
        "15-own-prompt-id-and-order.json",
        "17-validation-failure-sends-no-message.json"
    ),
    [](const auto& entry) { return "number_" + std::string(entry.param).substr(0, 2); }
);

TEST(Agent, HandsOnWhatComfyUiSaysToTheByte) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    Http direct(agent.comfyui_url());
    for (const char* path :
         {"/system_stats",
          "/object_info",
          "/embeddings",
          "/nowhere",
          "/api/queue",
          "/features",
          "/view?filename=nothing.png"}) {
        const Reply through = agent.http().get(path);
        const Reply plain = direct.get(path);
        EXPECT_EQ(through.status, plain.status) << path;
        EXPECT_EQ(through.body, plain.body) << path;
        EXPECT_EQ(through.headers.get("Content-Type"), plain.headers.get("Content-Type")) << path;
        EXPECT_EQ(through.headers.get("Access-Control-Allow-Origin"), "*") << path;
    }
}

TEST(Agent, LargeUploadsAndDownloadsPassThrough) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{20'000'003}}) {
        std::string bytes(size, '\0');
        for (std::size_t i = 0; i < size; ++i) {
            bytes[i] = static_cast<char>(i * 7 + i / 251);
        }
        const std::string name = "f" + std::to_string(size) + ".bin";
        const Reply sent = agent.http().upload(
            "/upload/image", {{"image", name, "application/octet-stream", bytes}}
        );
        ASSERT_EQ(sent.status, 200) << sent.body;
        const Reply back = agent.http().get("/view?type=input&filename=" + name);
        EXPECT_EQ(back.status, 200);
        EXPECT_TRUE(back.body == bytes) << size;
    }
}

TEST(Agent, ManyAtOnceAreTurnedAwayNotQueued) {
    AgentProcess agent({.arguments = {"--requests-max", "2"}});
    ASSERT_TRUE(agent.wait_for("ready"));
    const std::string comfyui = agent.comfyui_url();
    ASSERT_EQ(Http(comfyui).post("/_double/faults", R"({"dead_worker": true})").status, 200);
    std::vector<std::thread> threads;
    std::atomic<int> timeouts{0};
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            Http http(agent.url());
            http.set_header("Authorization", std::string("Bearer ") + support::kAgentToken);
            const Reply reply = http.post_json("/prompt_sync?timeout=4", asked(small_picture()));
            timeouts += reply.status == 408 ? 1 : 0;
        });
    }
    Http direct(comfyui);
    ASSERT_TRUE(wait_until([&] {
        return direct.get("/queue").json_at("/queue_pending/1").is_array();
    }));
    const Reply refused = agent.http().get("/queue");
    EXPECT_EQ(refused.status, 503) << refused.body;
    EXPECT_EQ(refused.headers.get("Retry-After"), "1");
    EXPECT_EQ(Http(agent.url()).get("/healthz").status, 200);
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(timeouts, 2);
    EXPECT_EQ(agent.http().get("/queue").status, 200);
}

TEST(Agent, PromptSyncGivesTheResult) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    const Reply reply = agent.http().post_json(
        "/prompt_sync", asked(small_picture(), {{"return_image_base64", true}})
    );
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json_at("/status"), "success");
    EXPECT_EQ(reply.json_at("/node_errors"), json::object());
    EXPECT_TRUE(reply.json_at("/execution_time").is_number());
    EXPECT_TRUE(reply.json_at("/outputs/3/images/0/filename").is_string()) << reply.body;
    EXPECT_THAT(
        std::string(reply.json_at("/images/3/0/data").as_string()),
        testing::StartsWith("iVBORw0KGgo")
    );
    const std::string id(reply.json_at("/prompt_id").as_string());
    EXPECT_TRUE(agent.http().get("/history/" + id).json().get_object().contains(id));
    // Without pictures where they are not wanted.
    const Reply plain = agent.http().post_json("/prompt_sync", asked(small_picture(1)));
    EXPECT_FALSE(plain.json().get_object().contains("images"));
}

TEST(Agent, PromptSyncSaysWhatWentWrong) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    const auto members = [](const Reply& reply) {
        const json::value body = reply.json();
        for (const char* name :
             {"error", "detail", "prompt_id", "node_errors", "timestamp", "status", "code"}) {
            EXPECT_TRUE(body.is_object() && body.get_object().contains(name)) << name << reply.body;
        }
    };
    // A node that fails, with what others had made before it.
    const Reply failed =
        agent.http().post_json("/prompt_sync", asked(text_to_image("x", "node_error")));
    EXPECT_EQ(failed.status, 400) << failed.body;
    members(failed);
    EXPECT_FALSE(failed.json_at("/node_errors").get_object().empty());
    EXPECT_TRUE(failed.json_at("/prompt_id").is_string());
    // A prompt that is not valid.
    json::object wrong = text_to_image("x");
    wrong["3"].as_object()["inputs"].as_object()["sampler_name"] = "no such";
    const Reply invalid = agent.http().post_json("/prompt_sync", asked(wrong));
    EXPECT_EQ(invalid.status, 422) << invalid.body;
    members(invalid);
    EXPECT_TRUE(invalid.json_at("/node_errors/3/0").is_string()) << invalid.body;
    // Requests that are not.
    for (const char* body :
         {"",
          "{",
          "[]",
          "{}",
          R"({"prompt": 5})",
          R"({"prompt": {"1": 5}})",
          R"({"prompt": {}, "timeout": "soon"})",
          R"({"prompt": {}, "client_id": 5})",
          R"({"prompt": {}, "extra_data": 5})",
          R"({"prompt": {}, "return_image_base64": "yes"})"}) {
        const Reply refused = agent.http().post("/prompt_sync", body);
        EXPECT_EQ(refused.status, 422) << body << refused.body;
        members(refused);
    }
    EXPECT_EQ(
        agent.http().post_json("/prompt_sync?timeout=never", asked(small_picture())).status, 422
    );
    // One that does not end in time is withdrawn, or goes on where that is asked for.
    const Reply late = agent.http().post_json(
        "/prompt_sync?timeout=0.3", asked(text_to_image("late", "hang_interruptible"))
    );
    EXPECT_EQ(late.status, 408) << late.body;
    EXPECT_EQ(late.json_at("/status"), "timeout");
    members(late);
    EXPECT_TRUE(wait_until([&] {
        return agent.http().get("/queue").json_at("/queue_running") == json::array();
    }));
    const Reply on = agent.http().post_json(
        "/prompt_sync?timeout=0.3",
        asked(text_to_image("on", "hang_interruptible"), {{"on_timeout", "continue"}})
    );
    EXPECT_EQ(on.status, 408);
    EXPECT_TRUE(wait_until([&] {
        return agent.http().get("/queue").json_at("/queue_running/0/1") == on.json_at("/prompt_id");
    }));
    agent.http().post("/interrupt", "{}");
}

// A request whose client can be told to go away.
std::string sync_request(json::object prompt, json::object more = {}) {
    const std::string body = json::serialize(asked(prompt, std::move(more)));
    return "POST /prompt_sync HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
           std::string(support::kAgentToken) +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

bool is_running(AgentProcess& agent, std::size_t prompts) {
    return agent.http().get("/queue").json_at("/queue_running").as_array().size() == prompts;
}

TEST(Agent, PromptsOfClientsThatWentAwayAreTakenBack) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    auto first = std::make_unique<support::RawSocket>(agent.url());
    first->send(sync_request(text_to_image("a", "hang_interruptible")));
    ASSERT_TRUE(wait_until([&] { return is_running(agent, 1); }));
    const json::value runs = agent.http().get("/queue").json_at("/queue_running/0/1");
    support::RawSocket other(agent.url());
    {
        support::RawSocket waits(agent.url());
        waits.send(sync_request(text_to_image("b")));
        ASSERT_TRUE(wait_until([&] {
            return agent.http().get("/queue").json_at("/queue_pending/0").is_array();
        }));
    }
    EXPECT_TRUE(wait_until([&] {
        return agent.http().get("/queue").json_at("/queue_pending") == json::array();
    }));
    EXPECT_EQ(agent.http().get("/queue").json_at("/queue_running/0/1"), runs) << "another's";
    other.send(sync_request(small_picture()));
    first.reset();
    EXPECT_THAT(other.read_until("\r\n"), HasSubstr(" 200"));
    EXPECT_TRUE(is_running(agent, 0));
}

TEST(Agent, OrGoOnWhereThatIsAskedFor) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    {
        support::RawSocket client(agent.url());
        client.send(
            sync_request(text_to_image("on", "hang_interruptible"), {{"on_timeout", "continue"}})
        );
        ASSERT_TRUE(wait_until([&] { return is_running(agent, 1); }));
    }
    EXPECT_TRUE(wait_until([&] { return agent.log().find("it goes on") != std::string::npos; }));
    EXPECT_TRUE(is_running(agent, 1));
    agent.http().post("/interrupt", "{}");
}

// Nor do they bring nearer the moment at which ComfyUI is made anew.
TEST(Agent, PromptsThatWereRefusedAreNotCounted) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    for (const char* body : {"{", R"({"prompt": {}})", R"({"prompt": {"1": {}}})"}) {
        EXPECT_EQ(agent.http().post("/prompt_sync", body).status, 422);
        EXPECT_NE(agent.http().post("/prompt", body).status, 200);
    }
    EXPECT_EQ(agent.status().at("comfyui").at("jobs"), 0);
    EXPECT_EQ(agent.status().at("jobs"), 0);
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
    EXPECT_EQ(agent.http().post_json("/prompt", asked(small_picture(1))).status, 200);
    EXPECT_EQ(agent.status().at("comfyui").at("jobs"), 2);
}

TEST(Agent, WhoIsHealthyTakesPrompts) {
    AgentProcess agent;
    ASSERT_TRUE(wait_until([&] { return agent.http().get("/health").status == 200; }));
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
}

TEST(Agent, PromptSyncIsNotHeldUpByAComfyUiThatHangs) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    const int comfyui = agent.comfyui_pid();
    ::kill(comfyui, SIGSTOP);
    const Reply late = agent.http().post_json("/prompt_sync?timeout=0.3", asked(small_picture()));
    ::kill(comfyui, SIGCONT);
    EXPECT_EQ(late.status, 408) << late.body;
    EXPECT_EQ(late.json_at("/status"), "timeout");
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
}

TEST(Agent, HealthInBothShapes) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    const Reply healthy = agent.http().get("/health");
    EXPECT_EQ(healthy.status, 200);
    EXPECT_EQ(healthy.json_at("/status"), "healthy");
    EXPECT_EQ(healthy.json_at("/comfyui_server"), "connected");
    EXPECT_EQ(healthy.json_at("/queue_running"), 0);
    EXPECT_EQ(healthy.json_at("/queue_pending"), 0);
    EXPECT_TRUE(healthy.json_at("/timestamp").is_number());

    AgentProcess without(
        {.environment = {{"COMFYUI_SERVER_ADDRESS", "127.0.0.1:1"}}, .has_comfyui = false}
    );
    const Reply unhealthy = without.http().get("/health");
    EXPECT_EQ(unhealthy.status, 503);
    EXPECT_EQ(unhealthy.json_at("/status"), "unhealthy");
    EXPECT_TRUE(unhealthy.json_at("/error").is_string());
    EXPECT_TRUE(unhealthy.json_at("/timestamp").is_number());
    // What needs ComfyUI says so.
    for (const Reply& reply :
         {without.http().get("/queue"),
          without.http().post_json("/prompt_sync", asked(small_picture())),
          without.http().post_json("/prompt", asked(small_picture()))}) {
        EXPECT_EQ(reply.status, 503) << reply.body;
        EXPECT_TRUE(reply.json_at("/detail").is_string()) << reply.body;
    }
}

TEST(Agent, UsesAComfyUiThatSomebodyElseRuns) {
    Process comfyui({.arguments = {COMFY_DOUBLE}});
    const auto url = comfyui.wait_for_line("listening on http://");
    ASSERT_TRUE(url);
    AgentProcess agent({.environment = {{"COMFYUI_SERVER_ADDRESS", *url}}, .has_comfyui = false});
    ASSERT_TRUE(agent.wait_for("ready"));
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
    EXPECT_EQ(agent.http().post("/worker/v1/restart", "").status, 409);
    EXPECT_EQ(agent.process().stop(), 0);
    EXPECT_TRUE(comfyui.running());
}

TEST(Agent, PagesOfOtherSitesMayUseItWithTheToken) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    Http page(agent.url());
    net::Headers headers;
    headers.set("Origin", "https://app.example");
    headers.set("Access-Control-Request-Method", "POST");
    const Reply preflight =
        page.send({.method = "OPTIONS", .url = "/prompt_sync", .headers = headers});
    EXPECT_EQ(preflight.status, 200);
    EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Origin"), "*");
    EXPECT_THAT(
        std::string(preflight.headers.get("Access-Control-Allow-Headers")),
        HasSubstr("Authorization")
    );
    net::Headers asking;
    asking.set("Origin", "https://app.example");
    asking.set("Sec-Fetch-Site", "cross-site");
    const Reply reply = agent.http().get("/queue", asking);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers.get("Access-Control-Allow-Origin"), "*");
}

TEST(Agent, RestartsComfyUiWhenItCrashesHangsOrIsTold) {
    AgentProcess agent({.arguments = {"--hang-s", "2"}});
    ASSERT_TRUE(agent.wait_for("ready"));
    const auto restarted = [&](int times) {
        return wait_until([&] {
            return agent.http().get("/worker/v1/status").json_at("/comfyui/restarts") == times &&
                   agent.state() == "ready";
        });
    };
    ::kill(agent.comfyui_pid(), SIGKILL);
    EXPECT_TRUE(restarted(1)) << agent.log();
    EXPECT_EQ(agent.http().post("/worker/v1/restart", "").status, 202);
    EXPECT_TRUE(restarted(2)) << agent.log();
    ::kill(agent.comfyui_pid(), SIGSTOP);
    EXPECT_TRUE(restarted(3)) << agent.log();
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
}

class AgentSandbox : public testing::TestWithParam<const char*> {};

// At every level it is reached, writes where it may, and does not see the agent's secrets.
TEST_P(AgentSandbox, RunsComfyUi) {
    const std::string support = [] {
        Process check({.arguments = {COMFYD_BINARY, "sandbox", "check"}});
        check.wait();
        return check.output();
    }();
    const std::string level = GetParam();
    const bool has_basic = support.find("level     minimal") == std::string::npos;
    const bool has_strict = support.find("level     strict") != std::string::npos;
    if ((level == "basic" && !has_basic) || (level == "strict" && !has_strict)) {
        GTEST_SKIP() << "this system has no such sandbox: " << support;
    }
    const std::string build = std::filesystem::path(COMFY_DOUBLE).parent_path();
    AgentProcess agent({.arguments = {"--sandbox", level, "--read", build}});
    ASSERT_TRUE(agent.wait_for("ready"))
        << agent.log() << read_file(agent.folder() + "/comfyui.log");
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
    const pid_t comfyui = agent.comfyui_pid();
    EXPECT_EQ(agent.process().stop(), 0);
    EXPECT_FALSE(is_alive(comfyui));
}

INSTANTIATE_TEST_SUITE_P(
    Levels,
    AgentSandbox,
    testing::Values("minimal", "basic", "strict"),
    [](const auto& entry) { return std::string(entry.param); }
);

TEST(Agent, APortThatIsTakenIsLeftToWhoHasIt) {
    Process other({.arguments = {COMFY_DOUBLE}});
    const auto url = other.wait_for_line("listening on http://127.0.0.1:");
    ASSERT_TRUE(url);
    AgentProcess agent({.arguments = {"--comfyui-port", *url}});
    ASSERT_TRUE(agent.wait_for("ready"))
        << agent.log() << read_file(agent.folder() + "/comfyui.log");
    EXPECT_NE(agent.comfyui_url(), "http://127.0.0.1:" + *url);
    EXPECT_EQ(agent.http().post_json("/prompt_sync", asked(small_picture())).status, 200);
    EXPECT_EQ(Http("http://127.0.0.1:" + *url).get("/history").json(), json::object());
}

TEST(Agent, TellsOfItsModelFiles) {
    AgentProcess agent;
    EXPECT_EQ(agent.http().get("/worker/v1/files").json_at("/files"), json::array());
    EXPECT_EQ(agent.http().get("/worker/v1/nothing").status, 404);
}

TEST(Agent, RequestsOfOtherFormsReachNoOtherServer) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    for (const char* target : {"http://127.0.0.1:1/x", "@127.0.0.1:1/x", "*", ".evil.example/"}) {
        support::RawSocket socket(agent.url());
        socket.send(
            "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
            support::kAgentToken + "\r\nConnection: close\r\n\r\n"
        );
        const std::string head = socket.read_until("\r\n");
        EXPECT_THAT(head, HasSubstr(" 4")) << target;
    }
    // Lengths that do not agree are not handed on.
    support::RawSocket smuggler(agent.url());
    smuggler.send(
        std::string("POST /prompt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ") +
        support::kAgentToken +
        "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    );
    EXPECT_THAT(smuggler.read_until("\r\n"), HasSubstr(" 400"));
}

TEST(Agent, OneFolderIsForOneAgent) {
    AgentProcess agent;
    Process second(ProcessOptions{
        .arguments =
            {COMFYD_BINARY,
             "worker",
             "--listen",
             "127.0.0.1:0",
             "--folder",
             agent.folder(),
             "--comfyui",
             agent.comfyui()},
    });
    EXPECT_EQ(second.wait(), 4);
    EXPECT_THAT(second.errors() + second.output(), HasSubstr("another agent"));
}

TEST(Agent, WaitsForItsPromptsWhenToldToStop) {
    AgentProcess agent;
    ASSERT_TRUE(agent.wait_for("ready"));
    std::thread client([&] {
        Http http(agent.url());
        http.set_header("Authorization", std::string("Bearer ") + support::kAgentToken);
        const Reply reply =
            http.post_json("/prompt_sync", asked(text_to_image("slow", "slow=1500")));
        EXPECT_EQ(reply.status, 200) << reply.body;
    });
    ASSERT_TRUE(wait_until([&] {
        return agent.http().get("/queue").json_at("/queue_running/0").is_array();
    }));
    agent.process().kill(SIGTERM);
    EXPECT_TRUE(wait_until([&] {
        const Reply reply = agent.http().post_json("/prompt", asked(small_picture()));
        return reply.status == 503 || reply.status == 0;
    }));
    client.join();
    EXPECT_EQ(agent.process().wait(), 0);
}

TEST(Agent, TheGraceIsTheLongestItWaits) {
    AgentProcess agent({.arguments = {"--grace-s", "1"}});
    ASSERT_TRUE(agent.wait_for("ready"));
    ASSERT_EQ(agent.http().post_json("/prompt", asked(text_to_image("x", "hang"))).status, 200);
    const pid_t comfyui = agent.comfyui_pid();
    EXPECT_EQ(agent.process().stop(), 0);
    EXPECT_FALSE(is_alive(comfyui));
}

TEST(Agent, LogsWhereItIsToldTo) {
    AgentProcess agent({.environment = {{"LOG_OUTPUT", "both"}, {"LOG_LEVEL", "INFO"}}});
    ASSERT_TRUE(agent.wait_for("ready"));
    EXPECT_TRUE(wait_until([&] {
        return read_file(agent.folder() + "/worker.log").find("ready") != std::string::npos &&
               agent.log().find("ready") != std::string::npos;
    }));
    Process wrong(ProcessOptions{
        .arguments = {COMFYD_BINARY, "worker", "--listen", "127.0.0.1:0"},
        .environment = {{"LOG_OUTPUT", "paper"}}
    });
    EXPECT_EQ(wrong.wait(), 2);
    EXPECT_THAT(wrong.errors() + wrong.output(), HasSubstr("LOG_OUTPUT"));
}

}  // namespace
}  // namespace comfyd
