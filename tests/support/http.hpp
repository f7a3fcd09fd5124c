// A client for tests that block: requests, event streams and WebSockets, each on a thread of the
// Http object. Its members may be called from any thread; streams must go before the Http that made
// them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "net/client.hpp"
#include "support/wait.hpp"

namespace comfyd::support {

struct Reply {
    int status = 0;  // 0: no answer, see error
    net::Headers headers{};
    std::string body{};
    std::optional<Error> error{};

    bool ok() const { return status >= 200 && status < 300; }
    // The body as JSON; null when it is none, so that a test fails at what it expects and not here.
    json::value json() const;
    // A member below: json_at("/jobs/0/id"); null when it is not there.
    json::value json_at(std::string_view pointer) const;
};

struct SseEvent {
    std::string id{};
    std::string type = "message";
    std::string data{};
    json::value json() const;
};

// Server-sent events that arrive in the background.
class EventStream {
public:
    ~EventStream();  // closes the connection
    EventStream(const EventStream&) = delete;
    EventStream& operator=(const EventStream&) = delete;

    std::vector<SseEvent> events() const;
    // The first event so far or later that satisfies `predicate`; nullopt at the deadline or the
    // end of the stream.
    std::optional<SseEvent> wait_for(
        const std::function<bool(const SseEvent&)>& predicate,
        std::chrono::milliseconds deadline = kDeadline
    ) const;
    bool ended() const;
    bool wait_end(std::chrono::milliseconds deadline = kDeadline) const;
    Reply reply() const;  // status and headers, once it ended

    struct State;
    explicit EventStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

private:
    std::shared_ptr<State> state_;  // with its task
};

// A WebSocket whose messages arrive in the background.
class WsStream {
public:
    ~WsStream();  // drops the connection
    WsStream(const WsStream&) = delete;
    WsStream& operator=(const WsStream&) = delete;

    bool connected() const;
    std::vector<net::WebSocketMessage> messages() const;
    // All text messages that are JSON.
    std::vector<json::value> json_messages() const;
    // The next message, in order; nullopt at the deadline or after the last one.
    std::optional<net::WebSocketMessage> next(std::chrono::milliseconds deadline = kDeadline);
    // The first JSON message so far or later that satisfies `predicate`.
    std::optional<json::value> wait_for(
        const std::function<bool(const json::value&)>& predicate,
        std::chrono::milliseconds deadline = kDeadline
    ) const;
    bool ended() const;
    bool wait_end(std::chrono::milliseconds deadline = kDeadline) const;
    void send(std::string text);
    void close();

    struct State;
    explicit WsStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

private:
    std::shared_ptr<State> state_;  // with its task
    std::size_t read_ = 0;
};

class Http {
public:
    // `base` goes before every path: "http://127.0.0.1:8080". `ca_file`: whom it trusts, too.
    explicit Http(std::string base, std::string ca_file = {});
    ~Http();
    Http(const Http&) = delete;
    Http& operator=(const Http&) = delete;

    // Added to every request from now on.
    void set_header(std::string_view name, std::string value);

    Reply get(std::string path, net::Headers headers = {});
    Reply post(std::string path, std::string body, net::Headers headers = {});
    Reply post_json(std::string path, const json::value& body, net::Headers headers = {});
    Reply put(std::string path, std::string body, net::Headers headers = {});
    Reply del(std::string path, net::Headers headers = {});
    Reply upload(
        std::string path, const std::vector<net::FormPart>& parts, net::Headers headers = {}
    );
    // `url` of the request is a path here too.
    Reply send(net::ClientRequest request);

    std::unique_ptr<EventStream> events(std::string path, net::Headers headers = {});
    // All events up to and with the first that satisfies `until`.
    std::vector<SseEvent> read_events(
        std::string path,
        const std::function<bool(const SseEvent&)>& until,
        net::Headers headers = {}
    );
    // Connected when it returns, or connected() is false.
    std::unique_ptr<WsStream> ws(std::string path, net::Headers headers = {});

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::support
