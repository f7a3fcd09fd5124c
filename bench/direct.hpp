// Drives one ComfyUI as a program does that knows nothing of comfyd.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "support/comfyd.hpp"

namespace comfyd::bench {

class DirectWorker {
public:
    explicit DirectWorker(const std::string& url)
        : http_(url), socket_(http_.ws("/ws?clientId=bench")) {}

    // Runs a prompt to its end and returns its id.
    std::string run(json::object graph) {
        const support::Reply reply = http_.post_json(
            "/prompt", json::object{{"prompt", std::move(graph)}, {"client_id", "bench"}}
        );
        while (!is_end(next_message())) {
        }
        return std::string(reply.json_at("/prompt_id").as_string());
    }

    support::Http& http() { return http_; }

private:
    net::WebSocketMessage next_message() {
        auto message = socket_->next();
        if (!message) {
            std::fprintf(stderr, "the worker's socket broke\n");
            std::exit(1);
        }
        return std::move(*message);
    }
    static bool is_end(const net::WebSocketMessage& message) {
        return !message.binary && message.data.find("\"executing\"") != std::string::npos &&
               (message.data.find("\"node\": null") != std::string::npos ||
                message.data.find("\"node\":null") != std::string::npos);
    }

    support::Http http_;
    std::unique_ptr<support::WsStream> socket_;
};

}  // namespace comfyd::bench
