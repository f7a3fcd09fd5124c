// What the tests of the native API share: a comfyd in front of its engine or of doubles, and the
// words of ComfyUI's clients.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/comfyd.hpp"

namespace comfyd::support {

inline net::Headers header(std::string_view name, std::string value) {
    net::Headers headers;
    headers.set(name, std::move(value));
    return headers;
}

inline std::string type_of(const json::value& message) {
    return std::string(message.at("type").get_string());
}

// The types of the messages about one prompt, in order.
inline std::vector<std::string> story_of(const WsStream& socket, const std::string& prompt_id) {
    std::vector<std::string> types;
    for (const json::value& message : socket.json_messages()) {
        const json::object& data = message.at("data").get_object();
        const json::value* id = data.if_contains("prompt_id");
        if (id != nullptr && *id == json::value(prompt_id)) {
            const json::value* node = data.if_contains("node");
            const bool last = type_of(message) == "executing" && node != nullptr && node->is_null();
            types.push_back(last ? "end" : type_of(message));
        }
    }
    return types;
}

inline bool wait_end_of(const WsStream& socket, const std::string& prompt_id) {
    return wait_until([&] {
        const auto story = story_of(socket, prompt_id);
        return !story.empty() && story.back() == "end";
    });
}

inline std::string post_prompt(
    Http& http, const json::object& graph, const std::string& client_id, json::object more = {}
) {
    more["prompt"] = graph;
    if (!client_id.empty()) {
        more["client_id"] = client_id;
    }
    const Reply reply = http.post_json("/prompt", more);
    EXPECT_EQ(reply.status, 200) << reply.body;
    const json::value id = reply.json_at("/prompt_id");
    return id.is_string() ? std::string(id.get_string()) : std::string();
}

// comfyd in front of one double.
class NativeTest : public testing::Test {
protected:
    void start(DoubleOptions options = {}, std::vector<std::string> arguments = {}) {
        thread_.start();
        worker_ = std::make_unique<ComfyDouble>(thread_.context(), std::move(options));
        worker_->start();
        ComfydOptions serve;
        serve.arguments = {"--no-engine", "--worker", worker_->url(), "--set", "fleet.poll_ms=100"};
        serve.arguments.insert(serve.arguments.end(), arguments.begin(), arguments.end());
        comfyd_ = std::make_unique<Comfyd>(serve);
        wait_workers(1);
    }
    void wait_workers(int count) {
        EXPECT_TRUE(wait_until([&] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(count);
        }));
    }
    ~NativeTest() override {
        comfyd_.reset();
        worker_.reset();
        second_.reset();
        thread_.stop();
    }
    Http& http() { return comfyd_->http(); }
    std::unique_ptr<WsStream> socket(const std::string& client_id) {
        auto made = http().ws("/ws?clientId=" + client_id);
        EXPECT_TRUE(made->connected());
        EXPECT_TRUE(wait_until([&] { return !made->messages().empty(); }));
        return made;
    }

    net::IoThread thread_{"double"};
    std::unique_ptr<ComfyDouble> worker_;
    std::unique_ptr<ComfyDouble> second_;
    std::unique_ptr<Comfyd> comfyd_;
};

}  // namespace comfyd::support
