#include "agent/forwarder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/deadline.hpp"

namespace comfyd::agent {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kMessageBytesMax = 128 * 1024 * 1024;
constexpr std::chrono::seconds kSocketIdle{60};
constexpr Millis kConnect{10'000};
// For the next byte: nodes may compute for long before a route of theirs answers.
constexpr Millis kWait{600'000};
// A message waits no longer than this for answers to other clients.
constexpr Millis kOrder{5'000};
constexpr unsigned short kGoingAway = 1001;

// What belongs to one connection, and what is ours or tells whose page asks: ComfyUI refuses pages
// of other sites by those, and we have asked for a token in their place.
constexpr std::array<std::string_view, 13> kOwnHeaders{
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Expect",
    "Authorization",
    "Origin",
    "Host",
    "Content-Length",
};

bool is_own(std::string_view name) {
    constexpr std::string_view kFetch = "Sec-Fetch-";
    constexpr std::string_view kSocket = "Sec-WebSocket-";
    const auto begins = [&](std::string_view prefix) {
        return name.size() >= prefix.size() &&
               net::equal_ignoring_case(name.substr(0, prefix.size()), prefix);
    };
    return begins(kFetch) || begins(kSocket) ||
           std::ranges::any_of(kOwnHeaders, [&](std::string_view own) {
               return net::equal_ignoring_case(name, own);
           });
}

net::Headers passed_on(const net::Headers& headers) {
    net::Headers kept;
    for (const auto& [name, value] : headers.all()) {
        if (!is_own(name)) {
            kept.add(name, value);
        }
    }
    return kept;
}

// nullopt: it comes in chunks.
std::optional<std::uint64_t> body_bytes_of(const net::Request& request) {
    if (request.headers.contains("Transfer-Encoding")) {
        return std::nullopt;
    }
    const std::string_view text = request.headers.get("Content-Length");
    std::uint64_t length = 0;
    std::from_chars(text.data(), text.data() + text.size(), length);
    return length;
}

bool is_one_of(std::string_view path, std::initializer_list<std::string_view> names) {
    constexpr std::string_view kApi = "/api";
    if (path.starts_with("/api/")) {
        path.remove_prefix(kApi.size());
    }
    return std::ranges::any_of(names, [&](std::string_view name) {
        return path == name || (path.starts_with(name) && path[name.size()] == '/');
    });
}

Error unavailable(const ComfyUi& comfyui, const std::string& why) {
    return Error(
        Code::worker_unavailable,
        "ComfyUI is not there (" + std::string(to_string(comfyui.state())) +
            "): " + (comfyui.reason().empty() ? why : comfyui.reason())
    );
}

}  // namespace

Forwarder::Forwarder(Executor executor, net::Client& http, ComfyUi& comfyui, net::Headers added)
    : executor_(executor),
      http_(http),
      comfyui_(comfyui),
      added_(std::move(added)),
      answered_(executor) {}

bool Forwarder::wants_socket(const net::Request& request) {
    return net::equal_ignoring_case(request.headers.get("Upgrade"), "websocket");
}

bool Forwarder::is_prompt(const net::Request& request) {
    return request.method == net::Method::post && is_one_of(request.path, {"/prompt"});
}

Task<Result<>> Forwarder::forward(net::Exchange& exchange) {
    if (comfyui_.url().empty()) {
        co_return fail(unavailable(comfyui_, "it has no port yet"));
    }
    // Anything else would be read as part of the server's name.
    if (!exchange.request().target.starts_with('/')) {
        co_return fail(Code::invalid_argument, "the request's target must be a path");
    }
    const bool is_socket = wants_socket(exchange.request());
    auto done = is_socket ? forward_socket(exchange) : forward_request(exchange);
    auto result = co_await std::move(done);
    co_return result;
}

Task<Result<>> Forwarder::forward_request(net::Exchange& exchange) {
    const net::Request& request = exchange.request();
    if (is_one_of(request.path, {"/prompt", "/view", "/history", "/upload", "/jobs"})) {
        comfyui_.note_work(false);
    }
    net::ClientRequest asked;
    asked.method = request.method_name;
    asked.url = comfyui_.url() + request.target;
    asked.headers = passed_on(request.headers);
    asked.timeout = kWait;
    auto passage = co_await http_.pass(std::move(asked), body_bytes_of(request));
    if (!passage) {
        const bool is_down = passage.error().code == Code::connection_failed;
        co_return fail(is_down ? unavailable(comfyui_, passage.error().message) : passage.error());
    }
    // From before its last byte goes out: ComfyUI may have told of it before we know that it went.
    const bool is_queued = is_prompt(request);
    unanswered_ += is_queued ? 1 : 0;
    auto answered = co_await ask(exchange, **passage, is_queued);
    unanswered_ -= is_queued ? 1 : 0;
    answered_.notify();
    co_return answered;
}

Task<Result<>> Forwarder::ask(net::Exchange& exchange, net::Passage& passage, bool is_prompt) {
    auto sent = co_await send_body(exchange, passage);
    if (!sent) {
        co_return fail(std::move(sent.error()));
    }
    auto head = co_await passage.head();
    if (!head) {
        co_return fail(Code::upstream_error, "ComfyUI did not answer: " + head.error().message);
    }
    if (is_prompt && head->status == 200) {
        comfyui_.note_work(true);
    }
    auto answered = co_await send_answer(exchange, passage, std::move(*head));
    co_return answered;
}

// Fails where the client does not send it. ComfyUI may refuse a body before it has read it: then
// its answer says why.
Task<Result<>> Forwarder::send_body(net::Exchange& exchange, net::Passage& passage) {
    std::string room(kPieceBytes, '\0');
    bool more = body_bytes_of(exchange.request()) != 0U;
    while (more) {
        const auto count = co_await exchange.read_some(room.data(), room.size());
        if (!count) {
            co_return fail(count.error());
        }
        more = *count > 0;
        if (more) {
            auto written = co_await passage.write(room.substr(0, *count));
            if (!written) {
                co_return Result<>();
            }
        }
    }
    auto ended = co_await passage.end_body();
    static_cast<void>(ended);
    co_return Result<>();
}

// What fails here fails at the client, who is gone then: there is nobody left to answer.
Task<Result<>> Forwarder::send_answer(
    net::Exchange& exchange, net::Passage& passage, net::AnswerHead head
) {
    net::Response response;
    response.status = head.status;
    response.headers = passed_on(head.headers);
    for (const auto& [name, value] : added_.all()) {
        response.headers.set(name, value);
    }
    const std::string_view length = head.headers.get("Content-Length");
    if (!length.empty()) {
        response.headers.set("Content-Length", std::string(length));
    }
    auto begun = co_await exchange.begin_stream(std::move(response));
    bool go_on = begun.has_value();
    while (go_on) {
        auto piece = co_await passage.read();
        if (!piece) {
            co_return Result<>();  // a stream that is not ended tells the client that it is cut
        }
        if (piece->empty()) {
            auto ended = co_await exchange.end_stream();
            static_cast<void>(ended);
            co_return Result<>();
        }
        auto written = co_await exchange.write_stream(std::move(*piece));
        go_on = written.has_value();
    }
    co_return Result<>();
}

Task<Result<>> Forwarder::forward_socket(net::Exchange& exchange) {
    const net::Request& request = exchange.request();
    net::WebSocketOptions options;
    options.message_bytes_max = kMessageBytesMax;
    options.idle_timeout = kSocketIdle;
    net::WebSocketOptions theirs = options;
    theirs.headers = passed_on(request.headers);
    std::string url = comfyui_.url() + request.target;
    url.replace(0, std::string_view("http").size(), "ws");
    auto upstream = co_await http_.connect(std::move(url), std::move(theirs), kConnect);
    if (!upstream) {
        const bool is_down = upstream.error().code == Code::connection_failed;
        co_return fail(
            is_down ? unavailable(comfyui_, upstream.error().message)
                    : Error(Code::upstream_error, upstream.error().message)
        );
    }
    auto client = co_await exchange.upgrade(std::move(options));
    if (!client) {
        co_return fail(std::move(client.error()));
    }
    TaskGroup both(executor_);
    both.spawn("WebSocket to ComfyUI", relay(**client, **upstream, false));
    both.spawn("WebSocket of ComfyUI", relay(**upstream, **client, true));
    co_await both.join_or_cancel();
    co_return Result<>();
}

// Until either side ends; the other is then closed.
Task<> Forwarder::relay(net::WebSocket& from, net::WebSocket& to, bool keeps_order) {
    bool go_on = true;
    while (go_on) {
        auto message = co_await from.read();
        if (!message) {
            break;
        }
        if (keeps_order && unanswered_ > 0) {
            co_await wait_for_answers();
        }
        auto written = co_await to.write(std::move(message->data), message->binary);
        go_on = written.has_value();
    }
    co_await to.close(kGoingAway, "the other side has closed");
    to.abort();
    from.abort();
}

Task<> Forwarder::wait_for_answers() {
    const Deadline deadline = Deadline::in(kOrder);
    bool go_on = true;
    while (go_on && unanswered_ > 0 && !deadline.has_passed()) {
        go_on = co_await answered_.wait_for(deadline.left());
    }
}

}  // namespace comfyd::agent
