// What tests of registered models are written with: the real gateway, real agents, and a server of
// models that does what it should not.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/crypto.hpp"
#include "support/agent.hpp"
#include "support/comfyd.hpp"
#include "support/model_server.hpp"

namespace comfyd::models_e2e {

namespace fs = std::filesystem;

using support::AgentOptions;
using support::AgentProcess;
using support::Comfyd;
using support::ModelServer;
using support::read_file;
using support::Reply;
using support::safetensors_file;
using support::wait_until;

inline constexpr std::size_t kSize = 3'000'000;

inline json::object workflow_with(const std::string& model, const std::string& text = "a cat") {
    json::object graph = support::text_to_image(text);
    graph["4"].as_object()["inputs"].as_object()["ckpt_name"] = model;
    return graph;
}

// The gateway over agents, and a server of models.
class RegisteredModels : public ::testing::Test {
protected:
    void start(int agents, const std::string& more = {}, json::object environment = {}) {
        std::string config =
            std::string("fleet: {poll_ms: 100}\nworkers:") + (agents == 0 ? " []\n" : "\n");
        for (int i = 0; i < agents; ++i) {
            AgentOptions options;
            options.double_arguments = double_arguments_;
            if (i == 0) {
                options.double_arguments += " " + double_arguments_of_first_;
            }
            options.environment = {
                {"COMFYD_MODELS_TRUSTED", server_.host()},
                {"HF_ENDPOINT", server_.url()},
            };
            for (const auto& [name, value] : environment) {
                options.environment[std::string(name)] = std::string(value.as_string());
            }
            agents_.push_back(std::make_unique<AgentProcess>(std::move(options)));
            config += "  - {id: w" + std::to_string(i) + ", url: '" + agents_.back()->url() +
                      "', token: " + support::kAgentToken + "}\n";
        }
        const std::string file = folder_.write("comfyd.yaml", config + more);
        gateway_ = std::make_unique<Comfyd>(
            support::ComfydOptions{.arguments = {"--no-engine", "--config", file}}
        );
        EXPECT_TRUE(wait_until([this] { return up() == agents_.size(); })) << gateway_->log();
    }
    // Workers that have come up since the start.
    std::size_t up() const {
        std::size_t count = 0;
        const std::string log = gateway_->log();
        for (auto at = log.find("worker is up"); at != std::string::npos;
             at = log.find("worker is up", at + 1)) {
            ++count;
        }
        return count;
    }
    Reply put(const std::string& path, const json::object& body) {
        net::ClientRequest request;
        request.method = "PUT";
        request.url = "/v2/models/" + path;
        request.body = json::serialize(body);
        request.headers.set("Content-Type", "application/json");
        return gateway_->http().send(std::move(request));
    }
    void register_model(const std::string& name, const std::string& path, json::object more = {}) {
        more["source"] = server_.url(path);
        const Reply made = put("checkpoints/" + name, more);
        EXPECT_THAT(made.status, ::testing::AnyOf(200, 201)) << made.body;
    }
    json::value finished(const std::string& id) {
        return gateway_->wait_finished(id, std::chrono::seconds(60));
    }
    void expect_succeeded(const std::string& id) {
        const json::value job = finished(id);
        EXPECT_EQ(Comfyd::status_of(job), "succeeded")
            << json::serialize(job) << gateway_->log() << agents_.front()->log();
    }
    fs::path path_of(std::size_t agent, const std::string& name) const {
        return fs::path(agents_[agent]->comfyui()) / "models/checkpoints" / name;
    }
    // Requests that brought bytes of it.
    std::size_t fetches(const std::string& path) const {
        return static_cast<std::size_t>(
            std::ranges::count(server_.seen(path), "GET", &support::SeenRequest::method)
        );
    }

    std::string double_arguments_;
    std::string double_arguments_of_first_;  // beside those
    support::TempDir folder_;
    ModelServer server_;
    std::string file_ = safetensors_file(kSize);
    std::vector<std::unique_ptr<AgentProcess>> agents_;
    std::unique_ptr<Comfyd> gateway_;
};

}  // namespace comfyd::models_e2e
