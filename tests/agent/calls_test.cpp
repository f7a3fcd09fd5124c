// Workers behind NAT: `comfyd worker` calls the gateway, which then uses it like any other.
#include "agent/calls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/crypto.hpp"
#include "support/agent.hpp"
#include "support/certificate.hpp"
#include "support/comfyd.hpp"
#include "support/fault_proxy.hpp"
#include "support/model_server.hpp"
#include "support/raw_socket.hpp"

namespace comfyd {
namespace {

using support::AgentOptions;
using support::AgentProcess;
using support::Comfyd;
using support::FaultProxy;
using support::Http;
using support::read_file;
using support::text_to_image;
using support::wait_until;
using testing::HasSubstr;

constexpr const char* kToken = support::kAgentToken;

class AgentCalls : public testing::Test {
protected:
    AgentCalls() {
        const std::string config = folder_.write(
            "comfyd.yaml",
            "workers:\n  - url: worker://home\n    token: " + std::string(kToken) +
                "\n  - url: worker://other\n    token: token-of-the-other-one-9876\n"
                "fleet: {poll_ms: 100}\n"
        );
        gateway_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", config}}
        );
    }

    std::uint16_t port() const {
        return static_cast<std::uint16_t>(
            std::stoi(gateway_->url().substr(gateway_->url().rfind(':') + 1))
        );
    }
    // It has no port that anybody could connect to.
    void call(const std::string& gateway, AgentOptions options = {}) {
        options.environment["COMFYD_GATEWAY"] = gateway;
        options.environment.emplace("COMFYD_INSTANCE", "home");
        options.double_arguments += " --journal " + journal();
        options.has_port = false;
        agent_ = std::make_unique<AgentProcess>(std::move(options));
    }
    std::string journal() const { return folder_ / "journal"; }
    // How often a prompt was begun.
    std::size_t starts() const {
        const std::string text = read_file(journal());
        std::size_t count = 0;
        for (auto at = text.find("start"); at != std::string::npos;
             at = text.find("start", at + 1)) {
            ++count;
        }
        return count;
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = gateway_->wait_finished(id, std::chrono::seconds(60));
        EXPECT_EQ(Comfyd::status_of(job), "succeeded")
            << json::serialize(job) << agent_->log() << gateway_->log();
    }

    support::TempDir folder_;
    std::unique_ptr<Comfyd> gateway_;
    std::unique_ptr<AgentProcess> agent_;
};

TEST_F(AgentCalls, JobsRunOnAMachineThatNobodyCanReach) {
    call(gateway_->url());
    for (int i = 0; i < 5; ++i) {
        expect_succeeded(gateway_->submit(text_to_image("job " + std::to_string(i))));
    }
    EXPECT_EQ(starts(), 5U) << gateway_->log() << agent_->log();
    EXPECT_THAT(agent_->log() + gateway_->log(), testing::Not(HasSubstr(kToken)));
}

TEST_F(AgentCalls, AnUploadedModelComesFromWhereTheAgentCalls) {
    call(gateway_->url());
    expect_succeeded(gateway_->submit(text_to_image("first")));
    const std::string file = support::safetensors_file(2'000'000);
    const std::string hash = to_hex(sha256(file));
    const auto put = [&](const std::string& path, std::string body, const char* type) {
        net::ClientRequest request;
        request.method = "PUT";
        request.url = path;
        request.body = std::move(body);
        request.headers.set("Content-Type", type);
        return gateway_->http().send(std::move(request)).status;
    };
    EXPECT_EQ(put("/v2/model-contents/" + hash, file, "application/octet-stream"), 201);
    const std::string about = json::serialize(json::object{{"source", "upload:" + hash}});
    EXPECT_EQ(put("/v2/models/checkpoints/own.safetensors", about, "application/json"), 201);
    json::object workflow = text_to_image("with its own model");
    workflow["4"].as_object()["inputs"].as_object()["ckpt_name"] = "own.safetensors";
    expect_succeeded(gateway_->submit(workflow));
    EXPECT_EQ(support::read_file(agent_->comfyui() + "/models/checkpoints/own.safetensors"), file);
    // It gives nothing away by which others could have it.
    EXPECT_THAT(agent_->log() + gateway_->log(), testing::Not(HasSubstr("ticket=")));
}

TEST_F(AgentCalls, ARestartOfTheGatewayKeepsThePrompt) {
    call(gateway_->url());
    expect_succeeded(gateway_->submit(text_to_image("first")));
    const std::string id = gateway_->submit(text_to_image("slow", "slow=4000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 2; }));
    gateway_->restart();
    expect_succeeded(id);
    EXPECT_EQ(starts(), 2U) << "the prompt ran twice";
    expect_succeeded(gateway_->submit(text_to_image("after")));
}

TEST_F(AgentCalls, CutLinesDisturbNoPrompt) {
    FaultProxy proxy(port());
    call("http://127.0.0.1:" + std::to_string(proxy.port()));
    expect_succeeded(gateway_->submit(text_to_image("first")));
    const std::string id = gateway_->submit(text_to_image("slow", "slow=3000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 2; }));
    proxy.inflict(FaultProxy::Fault::cut);
    expect_succeeded(id);
    EXPECT_EQ(starts(), 2U) << "the prompt ran twice";
}

TEST_F(AgentCalls, LinesThatAreCutWithoutAWordAreFoundToBe) {
    FaultProxy proxy(port());
    call("http://127.0.0.1:" + std::to_string(proxy.port()));
    expect_succeeded(gateway_->submit(text_to_image("first")));
    const std::size_t before = proxy.accepted_connections();
    proxy.inflict(FaultProxy::Fault::swallow_both);
    // Sent into the silence: what waits for an answer there is asked anew once the agent has called
    // again, and not only after its own time, which is longer than this deadline.
    const std::string id = gateway_->submit(text_to_image("second"));
    EXPECT_TRUE(wait_until([&] { return proxy.accepted_connections() > before + 1; }));
    EXPECT_EQ(Comfyd::status_of(gateway_->wait_finished(id)), "succeeded")
        << gateway_->log() << agent_->log();
    EXPECT_EQ(starts(), 2U);
}

TEST_F(AgentCalls, AGatewayThatIsAwayForAWhileIsCalledAgain) {
    FaultProxy proxy(port());
    proxy.refuse(true);
    call("http://127.0.0.1:" + std::to_string(proxy.port()));
    const std::string id = gateway_->submit(text_to_image("waits"));
    EXPECT_TRUE(wait_until([&] {
        return agent_->log().find("does not take the call") != std::string::npos;
    }));
    proxy.refuse(false);
    expect_succeeded(id);
}

TEST_F(AgentCalls, OneThatStopsSaysSoAndGetsNothingMore) {
    call(gateway_->url(), {.arguments = {"--grace-s", "20"}});
    expect_succeeded(gateway_->submit(text_to_image("first")));
    const std::string running = gateway_->submit(text_to_image("slow", "slow=2000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 2; }));
    agent_->process().kill(SIGTERM);
    ASSERT_TRUE(wait_until([&] {
        return gateway_->http().get("/admin/v1/workers").body.find("drain") != std::string::npos;
    })) << gateway_->http().get("/admin/v1/workers").body;
    const std::string waiting = gateway_->submit(text_to_image("waits"));
    expect_succeeded(running);
    EXPECT_EQ(agent_->process().wait(std::chrono::seconds(60)), 0);
    EXPECT_EQ(starts(), 2U);
    agent_->start();
    expect_succeeded(waiting);
}

// That it stops holds for as long as it says so: it is no wish of an operator's.
TEST_F(AgentCalls, OneThatStoppedServesAgainAlsoWhereTheGatewayWasStartedAnewMeanwhile) {
    call(gateway_->url(), {.arguments = {"--grace-s", "20"}});
    const std::string running = gateway_->submit(text_to_image("slow", "slow=2000"));
    ASSERT_TRUE(wait_until([&] { return starts() == 1; }));
    agent_->process().kill(SIGTERM);
    ASSERT_TRUE(wait_until([&] {
        return gateway_->http().get("/admin/v1/workers").body.find("drain") != std::string::npos;
    }));
    expect_succeeded(running);
    EXPECT_EQ(agent_->process().wait(std::chrono::seconds(60)), 0);
    const std::string waiting = gateway_->submit(text_to_image("waits"));
    gateway_->restart();
    agent_->start();
    expect_succeeded(waiting);
}

TEST_F(AgentCalls, ForeignAndStaleTokensAreRefused) {
    const auto try_as =
        [&](std::string_view route, const std::string& instance, const std::string& token) {
            net::Headers headers;
            headers.set(agent::kInstanceHeader, instance);
            headers.set(agent::kTokenHeader, token);
            headers.set(agent::kSessionHeader, "session");
            auto socket = gateway_->http().ws(std::string(route), headers);
            return socket->connected();
        };
    EXPECT_TRUE(try_as(agent::kControlRoute, "home", kToken));
    for (const std::string_view route : {agent::kControlRoute, agent::kLineRoute}) {
        EXPECT_FALSE(try_as(route, "home", "")) << route;
        EXPECT_FALSE(try_as(route, "home", "token-of-the-other-one-9876")) << route;
        EXPECT_FALSE(try_as(route, "other", kToken)) << route;
        EXPECT_FALSE(try_as(route, "nobody", kToken)) << route;
        EXPECT_FALSE(try_as(route, "", "")) << route;
        EXPECT_FALSE(try_as(route, "home", std::string(kToken) + "x")) << route;
        EXPECT_EQ(gateway_->http().get(std::string(route)).status, 401);
    }
    // A line of no call, or of an earlier one, is dropped and never used.
    net::Headers headers;
    headers.set(agent::kInstanceHeader, "home");
    headers.set(agent::kTokenHeader, kToken);
    headers.set(agent::kSessionHeader, "earlier");
    const auto line = gateway_->http().ws(std::string(agent::kLineRoute), headers);
    EXPECT_TRUE(line->wait_end());
    // An agent with another token is told so and goes on trying; with the right one it is let in.
    call(gateway_->url(), {.token = "some-other-token-0123456789"});
    EXPECT_TRUE(wait_until([&] {
        return agent_->log().find("COMFYD_WORKER_TOKEN must be") != std::string::npos;
    })) << agent_->log();
    agent_.reset();
    call(gateway_->url());
    expect_succeeded(gateway_->submit(text_to_image("x")));
}

TEST_F(AgentCalls, WhatALineMaySendIsUpToTheGateway) {
    call(gateway_->url());
    expect_succeeded(gateway_->submit(text_to_image("x")));
    // Somebody with the token of another worker parks lines and talks first, talks nonsense, and
    // goes: nothing of it reaches anybody.
    net::Headers headers;
    headers.set(agent::kInstanceHeader, "other");
    headers.set(agent::kTokenHeader, "token-of-the-other-one-9876");
    headers.set(agent::kSessionHeader, "s");
    const auto control = gateway_->http().ws(std::string(agent::kControlRoute), headers);
    ASSERT_TRUE(control->connected());
    control->send("no json");
    control->send("[]");
    control->send(R"({"state": 5, "instance": "home"})");
    control->send(R"({"state": "draining", "instance": "home"})");  // of itself, whatever it says
    const auto line = gateway_->http().ws(std::string(agent::kLineRoute), headers);
    line->send("HTTP/1.1 200 OK\r\n\r\n");
    EXPECT_TRUE(line->wait_end());
    expect_succeeded(gateway_->submit(text_to_image("y")));
}

TEST_F(AgentCalls, OverTlsOnlyToAGatewayThatItTrusts) {
    const support::Certificate certificate = support::make_certificate(folder_);
    const std::string config = folder_.write(
        "tls.yaml",
        "workers:\n  - url: worker://home\n    token: " + std::string(kToken) +
            "\nfleet: {poll_ms: 100}\ntls: {certificate: " + certificate.certificate +
            ", key: " + certificate.key + "}\n"
    );
    gateway_ = std::make_unique<Comfyd>(support::ComfydOptions{
        .arguments = {"--no-engine", "--config", config}, .ca_file = certificate.certificate
    });
    call(gateway_->url());
    EXPECT_TRUE(wait_until([&] {
        return agent_->log().find("does not take the call") != std::string::npos;
    }));
    agent_.reset();
    call(gateway_->url(), {.arguments = {"--ca-file", certificate.certificate}});
    expect_succeeded(gateway_->submit(text_to_image("x")));
}

TEST_F(AgentCalls, ManyAtOnceAndLargeOutputs) {
    call(gateway_->url(), {.double_arguments = "--output-bytes 3000000"});
    std::vector<std::string> ids;
    for (int i = 0; i < 20; ++i) {
        ids.push_back(gateway_->submit(text_to_image("many " + std::to_string(i))));
    }
    for (const std::string& id : ids) {
        expect_succeeded(id);
    }
    EXPECT_EQ(starts(), 20U);
}

}  // namespace
}  // namespace comfyd
