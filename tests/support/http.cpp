#include "support/http.hpp"

#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "base/wait_for.hpp"
#include "net/io_threads.hpp"

namespace comfyd::support {
namespace {

constexpr Millis kStreamTimeout = std::chrono::hours(1);

json::value parse_or_null(std::string_view text) {
    auto parsed = json::parse(text);
    return parsed ? std::move(*parsed) : json::value(nullptr);
}

Reply to_reply(Result<net::ClientResponse> result) {
    Reply reply;
    if (!result) {
        reply.error = std::move(result.error());
        return reply;
    }
    reply.status = result->status;
    reply.headers = std::move(result->headers);
    reply.body = std::move(result->body);
    return reply;
}

// Splits a text/event-stream into events.
class SseParser {
public:
    template <class Take>
    void feed(std::string_view piece, Take take) {
        buffer_ += piece;
        std::size_t newline = 0;
        while ((newline = buffer_.find('\n')) != std::string::npos) {
            std::string line = buffer_.substr(0, newline);
            buffer_.erase(0, newline + 1);
            if (line.ends_with('\r')) {
                line.pop_back();
            }
            if (!line.empty()) {
                field(line);
            } else if (has_data_) {
                take(std::exchange(event_, SseEvent{.id = event_.id}));
                has_data_ = false;
            } else {
                event_.type = "message";
            }
        }
    }

private:
    void field(std::string_view line) {
        const auto colon = line.find(':');
        const auto name = line.substr(0, colon);
        auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
        if (value.starts_with(' ')) {
            value.remove_prefix(1);
        }
        if (name == "id") {
            event_.id = value;
        } else if (name == "event") {
            event_.type = value;
        } else if (name == "data") {
            event_.data += has_data_ ? "\n" : "";
            event_.data += value;
            has_data_ = true;
        }
    }

    std::string buffer_;
    SseEvent event_;
    bool has_data_ = false;
};

}  // namespace

json::value Reply::json() const {
    return parse_or_null(body);
}

json::value Reply::json_at(std::string_view pointer) const {
    const auto document = json();
    boost::system::error_code ignored;
    const auto* found = document.find_pointer(pointer, ignored);
    return found ? *found : json::value(nullptr);
}

json::value SseEvent::json() const {
    return parse_or_null(data);
}

struct EventStream::State {
    explicit State(Executor state_executor) : executor(state_executor) {}
    Executor executor;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::vector<SseEvent> events;  // guarded
    Reply reply;                   // guarded
    bool ended = false;            // guarded
    bool cancelled = false;        // guarded
    std::unique_ptr<TaskGroup> group;
    SseParser parser;
};

EventStream::~EventStream() {
    {
        const std::scoped_lock lock(state_->mutex);
        state_->cancelled = true;
    }
    boost::asio::post(state_->executor, [state = state_] { state->group->cancel(); });
    comfyd::wait_for(state_->executor, state_->group->join());
}

std::vector<SseEvent> EventStream::events() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->events;
}

std::optional<SseEvent> EventStream::wait_for(
    const std::function<bool(const SseEvent&)>& predicate, std::chrono::milliseconds deadline
) const {
    const auto end = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(state_->mutex);
    std::size_t looked_at = 0;
    while (true) {
        for (; looked_at < state_->events.size(); ++looked_at) {
            if (predicate(state_->events[looked_at])) {
                return state_->events[looked_at];
            }
        }
        if (state_->ended || state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
            return std::nullopt;
        }
    }
}

bool EventStream::ended() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->ended;
}

bool EventStream::wait_end(std::chrono::milliseconds deadline) const {
    return wait_until([this] { return ended(); }, deadline);
}

Reply EventStream::reply() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->reply;
}

struct WsStream::State {
    explicit State(Executor state_executor) : executor(state_executor) {}
    Executor executor;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::vector<net::WebSocketMessage> messages;  // guarded
    bool ended = false;                           // guarded
    bool connected = false;                       // guarded
    std::unique_ptr<net::WebSocket> socket;       // on the executor
    std::unique_ptr<TaskGroup> group;

    Task<> read_all() {
        while (true) {
            auto message = co_await socket->read();
            const std::scoped_lock lock(mutex);
            if (!message) {
                ended = true;
                changed.notify_all();
                co_return;
            }
            messages.push_back(std::move(*message));
            changed.notify_all();
        }
    }
};

WsStream::~WsStream() {
    boost::asio::post(state_->executor, [state = state_] {
        if (state->socket) {
            state->socket->abort();
        }
    });
    comfyd::wait_for(state_->executor, state_->group->join());
    // The socket must be closed on its own thread.
    boost::asio::post(state_->executor, std::packaged_task<void()>([state = state_] {
                          state->socket.reset();
                      }));
}

bool WsStream::connected() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->connected;
}

std::vector<net::WebSocketMessage> WsStream::messages() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->messages;
}

std::vector<json::value> WsStream::json_messages() const {
    std::vector<json::value> parsed;
    for (const auto& message : messages()) {
        auto document = json::parse(message.data);
        if (!message.binary && document) {
            parsed.push_back(std::move(*document));
        }
    }
    return parsed;
}

std::optional<net::WebSocketMessage> WsStream::next(std::chrono::milliseconds deadline) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(state_->mutex);
    while (read_ >= state_->messages.size()) {
        if (state_->ended || state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
            return std::nullopt;
        }
    }
    return state_->messages[read_++];
}

std::optional<json::value> WsStream::wait_for(
    const std::function<bool(const json::value&)>& predicate, std::chrono::milliseconds deadline
) const {
    const auto end = std::chrono::steady_clock::now() + deadline;
    std::unique_lock lock(state_->mutex);
    std::size_t looked_at = 0;
    while (true) {
        for (; looked_at < state_->messages.size(); ++looked_at) {
            const auto& message = state_->messages[looked_at];
            auto document = json::parse(message.data);
            if (!message.binary && document && predicate(*document)) {
                return std::move(*document);
            }
        }
        if (state_->ended || state_->changed.wait_until(lock, end) == std::cv_status::timeout) {
            return std::nullopt;
        }
    }
}

bool WsStream::ended() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->ended;
}

bool WsStream::wait_end(std::chrono::milliseconds deadline) const {
    return wait_until([this] { return ended(); }, deadline);
}

void WsStream::send(std::string text) {
    if (connected()) {
        (void)comfyd::wait_for(state_->executor, state_->socket->write(std::move(text), false));
    }
}

void WsStream::close() {
    if (connected()) {
        comfyd::wait_for(state_->executor, state_->socket->close(1000, ""));
    }
}

class Http::Impl {
public:
    Impl(std::string base_url, std::string ca_file)
        : base(std::move(base_url)), thread("test-http") {
        thread.start();
        run([&] {
            client = std::make_unique<net::Client>(
                thread.executor(), net::ClientOptions{.ca_file = std::move(ca_file)}
            );
        });
    }
    ~Impl() {
        run([this] { client.reset(); });
        thread.stop();
    }

    template <class Work>
    void run(Work work) {
        std::promise<void> done;
        boost::asio::post(thread.executor(), [&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }

    net::ClientRequest complete(net::ClientRequest request) const {
        request.url = base + request.url;
        for (const auto& [name, value] : headers.all()) {
            if (!request.headers.contains(name)) {
                request.headers.set(name, value);
            }
        }
        return request;
    }

    std::string base;
    net::Headers headers;
    net::IoThread thread;
    std::unique_ptr<net::Client> client;
};

Http::Http(std::string base, std::string ca_file)
    : impl_(std::make_unique<Impl>(std::move(base), std::move(ca_file))) {}
Http::~Http() = default;

void Http::set_header(std::string_view name, std::string value) {
    impl_->headers.set(name, std::move(value));
}

Reply Http::send(net::ClientRequest request) {
    auto task = impl_->client->send(impl_->complete(std::move(request)));
    return to_reply(comfyd::wait_for(impl_->thread.executor(), std::move(task)));
}

Reply Http::get(std::string path, net::Headers headers) {
    return send({.method = "GET", .url = std::move(path), .headers = std::move(headers)});
}

Reply Http::post(std::string path, std::string body, net::Headers headers) {
    return send(
        {.method = "POST",
         .url = std::move(path),
         .headers = std::move(headers),
         .body = std::move(body)}
    );
}

Reply Http::post_json(std::string path, const json::value& body, net::Headers headers) {
    if (!headers.contains("Content-Type")) {
        headers.set("Content-Type", "application/json");
    }
    return post(std::move(path), json::serialize(body), std::move(headers));
}

Reply Http::put(std::string path, std::string body, net::Headers headers) {
    return send(
        {.method = "PUT",
         .url = std::move(path),
         .headers = std::move(headers),
         .body = std::move(body)}
    );
}

Reply Http::del(std::string path, net::Headers headers) {
    return send({.method = "DELETE", .url = std::move(path), .headers = std::move(headers)});
}

Reply Http::upload(
    std::string path, const std::vector<net::FormPart>& parts, net::Headers headers
) {
    auto form = net::make_multipart(parts);
    headers.set("Content-Type", std::move(form.content_type));
    return post(std::move(path), std::move(form.body), std::move(headers));
}

namespace {

// The stream's state is kept by the group that the task runs in.
Task<> read_stream(net::Client& client, net::ClientRequest request, EventStream::State& state) {
    auto result =
        co_await client.download(std::move(request), [&state](std::string_view piece) -> Result<> {
            const std::scoped_lock lock(state.mutex);
            state.parser.feed(piece, [&state](SseEvent event) {
                state.events.push_back(std::move(event));
            });
            state.changed.notify_all();
            return state.cancelled ? Result<>(fail(Code::cancelled, "enough")) : Result<>();
        });
    const std::scoped_lock lock(state.mutex);
    state.reply = to_reply(std::move(result));
    state.ended = true;
    state.changed.notify_all();
}

}  // namespace

std::unique_ptr<EventStream> Http::events(std::string path, net::Headers headers) {
    net::ClientRequest request{
        .url = std::move(path), .headers = std::move(headers), .timeout = kStreamTimeout
    };
    request.headers.set("Accept", "text/event-stream");
    request = impl_->complete(std::move(request));
    auto state = std::make_shared<EventStream::State>(impl_->thread.executor());
    impl_->run([&] {
        state->group = std::make_unique<TaskGroup>(state->executor);
        state->group->spawn(
            "event stream", read_stream(*impl_->client, std::move(request), *state)
        );
    });
    return std::make_unique<EventStream>(std::move(state));
}

std::vector<SseEvent> Http::read_events(
    std::string path, const std::function<bool(const SseEvent&)>& until, net::Headers headers
) {
    const auto stream = events(std::move(path), std::move(headers));
    stream->wait_for(until);
    std::vector<SseEvent> seen;
    for (auto& event : stream->events()) {
        seen.push_back(std::move(event));
        if (until(seen.back())) {
            break;
        }
    }
    return seen;
}

std::unique_ptr<WsStream> Http::ws(std::string path, net::Headers headers) {
    net::WebSocketOptions options;
    options.message_bytes_max = 256 * 1024 * 1024;
    options.headers = impl_->headers;
    for (const auto& [name, value] : headers.all()) {
        options.headers.set(name, value);
    }
    std::string url = impl_->base + path;
    url.replace(0, 4, "ws");  // http: to ws:, https: to wss:
    auto state = std::make_shared<WsStream::State>(impl_->thread.executor());
    auto task = impl_->client->connect(std::move(url), std::move(options), kDeadline);
    auto socket = comfyd::wait_for(state->executor, std::move(task));
    state->connected = socket.has_value();
    state->ended = !socket.has_value();
    impl_->run([&] {
        state->group = std::make_unique<TaskGroup>(state->executor);
        if (socket) {
            state->socket = std::move(*socket);
            state->group->spawn("websocket reader", state->read_all());
        }
    });
    return std::make_unique<WsStream>(std::move(state));
}

}  // namespace comfyd::support
