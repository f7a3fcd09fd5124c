// A server that records what is posted to it and answers by a script. Runs on a thread of its own;
// all members from any other thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "net/http.hpp"
#include "support/wait.hpp"

namespace comfyd::support {

struct ReceivedRequest {
    std::string method;
    std::string path;
    net::Headers headers;
    std::string body;
    std::chrono::steady_clock::time_point at;
    // Null when the body is no JSON.
    json::value json() const;
};

struct ScriptedAnswer {
    int status = 200;
    std::string body{};
    net::Headers headers{};
    std::chrono::milliseconds delay{0};
    bool drop = false;  // the connection breaks after the head of the answer
};

class WebhookReceiver {
public:
    WebhookReceiver();
    ~WebhookReceiver();
    WebhookReceiver(const WebhookReceiver&) = delete;
    WebhookReceiver& operator=(const WebhookReceiver&) = delete;

    std::string url(std::string path = "/hook") const;
    // One answer per request, in order; 200 when none is left.
    void script(std::vector<ScriptedAnswer> answers);
    void script_statuses(const std::vector<int>& statuses);

    std::vector<ReceivedRequest> requests() const;
    // True when at least `count` requests have arrived.
    bool wait_for(std::size_t count, std::chrono::milliseconds deadline = kDeadline) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::support
