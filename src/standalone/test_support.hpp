// For the tests of the room: a running server with a client.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "standalone/server.hpp"
#include "support/http.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::standalone::test {

class TestServer {
public:
    explicit TestServer(Options options = {}) : options_(std::move(options)) {
        options_.listen = {"127.0.0.1", 0};
        options_.data = folder_.path();
        options_.threads = 2;
        start();
    }

    void start() {
        auto started = Server::start(options_);
        if (!started) {
            throw std::runtime_error(started.error().message);
        }
        server_ = std::move(*started);
        http_ = std::make_unique<support::Http>(server_->url());
    }
    void stop() { server_.reset(); }

    support::Http& http() { return *http_; }
    const support::TempDir& folder() const { return folder_; }
    const Options& options() const { return options_; }
    std::string url() const { return server_->url(); }

    support::Reply post_prompt(const json::object& graph, json::object more = {}) {
        more["prompt"] = graph;
        return http().post_json("/prompt", more);
    }
    // The id of an accepted prompt.
    std::string submit(const json::object& graph, json::object more = {}) {
        const support::Reply reply = post_prompt(graph, std::move(more));
        if (reply.status != 200) {
            throw std::runtime_error("refused: " + reply.body);
        }
        return std::string(reply.json_at("/prompt_id").as_string());
    }
    // The entry of the history, once it is there; null at the deadline.
    json::value wait_ended(const std::string& id) {
        json::value entry;
        support::wait_until([&] {
            const json::value history = http().get("/history/" + id).json();
            if (history.is_object() && history.get_object().contains(id)) {
                entry = history.at(id);
            }
            return !entry.is_null();
        });
        return entry;
    }
    json::value run(const json::object& graph, json::object more = {}) {
        return wait_ended(submit(graph, std::move(more)));
    }

private:
    support::TempDir folder_;
    Options options_;
    std::unique_ptr<Server> server_;
    std::unique_ptr<support::Http> http_;
};

inline json::object parse(std::string_view text) {
    return *json::parse_object(text);
}

inline json::object small_picture(int color = 0, const std::string& prefix = "small") {
    json::object graph = parse(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 16, "height": 16, "batch_size": 1, "color": 0}},
        "2": {"class_type": "ImageInvert", "inputs": {"image": ["1", 0]}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0]}}})");
    graph["1"].as_object()["inputs"].as_object()["color"] = color;
    graph["3"].as_object()["inputs"].as_object()["filename_prefix"] = prefix;
    return graph;
}

// Runs for seconds, but stops at once when it is interrupted.
inline json::object long_work(int seed = 0) {
    json::object graph = parse(R"({
        "1": {"class_type": "EmptyImage", "inputs": {"width": 1536, "height": 1536, "batch_size": 6, "color": 0}},
        "2": {"class_type": "ImageBlur", "inputs": {"image": ["1", 0], "blur_radius": 31, "sigma": 10.0}},
        "3": {"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}}})");
    graph["1"].as_object()["inputs"].as_object()["color"] = seed;
    return graph;
}

}  // namespace comfyd::standalone::test
