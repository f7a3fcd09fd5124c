#include "net/client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <map>

#include <boost/asio/write.hpp>

#include "net/client_connection.hpp"
#include "net/client_passage.hpp"
#include "net/response_parser.hpp"
#include "net/websocket_stream.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 32 * 1024;

using ConnectionPtr = std::shared_ptr<ClientConnection>;

// An idle connection has nothing to say. What it says is "closed" or nonsense.
bool is_silent(ClientConnection& connection) {
    char byte = 0;
    const auto count =
        ::recv(connection.stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool is_token(std::string_view text) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        const bool alphanumeric =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return alphanumeric || kMarks.find(c) != std::string_view::npos;
    });
}

Result<> check(const ClientRequest& request) {
    if (!is_token(request.method)) {
        return fail(Code::invalid_argument, "'" + request.method + "' is no HTTP method");
    }
    for (const auto& [name, value] : request.headers.all()) {
        constexpr std::string_view kBreaks("\r\n\0", 3);
        if (!is_token(name) || value.find_first_of(kBreaks) != std::string::npos) {
            return fail(
                Code::invalid_argument, "the request header '" + name + "' has illegal characters"
            );
        }
    }
    return {};
}

std::string_view body_of(const ClientRequest& request) {
    return request.lent_body.empty() ? request.body : request.lent_body;
}

// `framing`: how the body is told, where it is not that of the request.
std::string make_head(
    const ClientRequest& request,
    const Url& url,
    const std::string& user_agent,
    const std::optional<std::string>& framing = std::nullopt
) {
    std::string head =
        request.method + " " + url.target + " HTTP/1.1\r\nHost: " + url.host_header() + "\r\n";
    const auto add_default = [&](std::string_view name, std::string_view value) {
        if (!request.headers.contains(name)) {
            head.append(name).append(": ").append(value).append("\r\n");
        }
    };
    add_default("User-Agent", user_agent);
    add_default("Accept", "*/*");
    add_default("Accept-Encoding", "identity");
    for (const auto& [name, value] : request.headers.all()) {
        const bool ours = equal_ignoring_case(name, "Host") ||
                          equal_ignoring_case(name, "Content-Length") ||
                          equal_ignoring_case(name, "Transfer-Encoding") ||
                          equal_ignoring_case(name, "Connection");
        if (!ours) {
            head.append(name).append(": ").append(value).append("\r\n");
        }
    }
    if (framing) {
        return head + *framing + "\r\n";
    }
    const std::size_t body_bytes = body_of(request).size();
    const bool has_body = body_bytes > 0 || request.method == "POST" || request.method == "PUT" ||
                          request.method == "PATCH";
    if (has_body) {
        head += "Content-Length: " + std::to_string(body_bytes) + "\r\n";
    }
    return head + "\r\n";
}

// One request on one connection.
struct Attempt {
    Result<ClientResponse> result = fail(Code::internal, "nothing was tried");
    bool sent_anything = false;
    bool received_anything = false;
    bool reusable = false;
};

}  // namespace

class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
public:
    Impl(Executor executor, ClientOptions options)
        : executor_(executor),
          options_(std::move(options)),
          connector_(executor, options_),
          prune_(executor) {}

    Task<Result<ClientResponse>> perform(ClientRequest request, Sink sink, Absorb absorb);
    Task<Result<std::unique_ptr<Passage>>> pass(
        ClientRequest request, std::optional<std::uint64_t> body_bytes
    );
    Task<Result<std::unique_ptr<WebSocket>>> connect(
        std::string text, WebSocketOptions options, Millis timeout, std::string unix_socket
    );
    void close_idle();
    Connector& connector() { return connector_; }

private:
    struct Idle {
        ConnectionPtr connection;
        Ticks::time_point since;
    };

    // `request`, `url`, `sink` and `absorb` live in perform().
    Task<Attempt> attempt(
        ConnectionPtr connection,
        const ClientRequest& request,
        const Url& url,
        const Sink& sink,
        const Absorb& absorb,
        Deadline deadline
    );
    Task<error_code> receive(
        ClientConnection& connection,
        ResponseParser& parser,
        ReadBuffer& buffer,
        const Absorb& absorb,
        Attempt& into
    );
    ConnectionPtr take_idle(const std::string& origin);
    void keep(const std::string& origin, ConnectionPtr connection);
    void schedule_prune();
    void prune();

    Executor executor_;
    ClientOptions options_;
    Connector connector_;
    std::map<std::string, std::deque<Idle>> idle_;
    Timer prune_;
    bool prune_scheduled_ = false;
};

ConnectionPtr Client::Impl::take_idle(const std::string& origin) {
    const auto found = idle_.find(origin);
    if (found == idle_.end()) {
        return nullptr;
    }
    auto& pool = found->second;
    while (!pool.empty()) {
        const Idle candidate = std::move(pool.back());
        pool.pop_back();
        const bool fresh = Ticks::now() - candidate.since < options_.idle_timeout;
        if (fresh && is_silent(*candidate.connection)) {
            candidate.connection->reused = true;
            return candidate.connection;
        }
    }
    idle_.erase(found);
    return nullptr;
}

void Client::Impl::keep(const std::string& origin, ConnectionPtr connection) {
    if (options_.idle_per_origin_max == 0) {
        return;
    }
    auto& pool = idle_[origin];
    pool.push_back({std::move(connection), Ticks::now()});
    if (pool.size() > options_.idle_per_origin_max) {
        pool.pop_front();
    }
    schedule_prune();
}

void Client::Impl::schedule_prune() {
    if (prune_scheduled_) {
        return;
    }
    prune_scheduled_ = true;
    prune_.expires_after(options_.idle_timeout);
    prune_.async_wait([weak = weak_from_this()](const error_code& error) {
        const auto self = weak.lock();
        if (self && !error) {
            self->prune_scheduled_ = false;
            self->prune();
        }
    });
}

void Client::Impl::prune() {
    const auto now = Ticks::now();
    for (auto entry = idle_.begin(); entry != idle_.end();) {
        auto& pool = entry->second;
        while (!pool.empty() && now - pool.front().since >= options_.idle_timeout) {
            pool.pop_front();
        }
        entry = pool.empty() ? idle_.erase(entry) : std::next(entry);
    }
    if (!idle_.empty()) {
        schedule_prune();
    }
}

void Client::Impl::close_idle() {
    idle_.clear();
    prune_scheduled_ = false;
    prune_.cancel();
}

Task<Result<ClientResponse>> Client::Impl::perform(
    ClientRequest request, Sink sink, Absorb absorb
) {
    const auto self = shared_from_this();
    const Deadline deadline = Deadline::in(request.timeout);
    auto url = Url::parse(request.url);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    url->socket = request.socket;
    if (url->scheme != "http" && url->scheme != "https") {
        co_return fail(Code::invalid_argument, "URL scheme must be http or https");
    }
    auto checked = check(request);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    const std::string origin =
        url->scheme + "://" + origin_name(*url) + (request.verify_tls ? "" : " unverified");
    const bool safe = request.method == "GET" || request.method == "HEAD";
    auto connection = take_idle(origin);
    while (true) {
        if (!connection) {
            auto opened = co_await connector_.open(*url, request.verify_tls, deadline);
            if (!opened) {
                co_return fail(std::move(opened.error()));
            }
            connection = std::move(*opened);
        }
        auto tried = co_await attempt(connection, request, *url, sink, absorb, deadline);
        if (tried.reusable) {
            keep(origin, connection);
        }
        const bool repeat = !tried.result && tried.result.error().code == Code::connection_failed &&
                            connection->reused && !tried.received_anything &&
                            (safe || !tried.sent_anything);
        if (!repeat) {
            co_return std::move(tried.result);
        }
        connection = nullptr;
    }
}

Task<Attempt> Client::Impl::attempt(
    ConnectionPtr connection,
    const ClientRequest& request,
    const Url& url,
    const Sink& sink,
    const Absorb& absorb,
    Deadline deadline
) {
    Attempt tried;
    const bool stop = co_await is_cancelled();
    if (stop) {
        tried.result = fail(to_client_error(url, asio::error::operation_aborted, false));
        co_return tried;
    }
    TimeGuard guard(executor_);
    guard.watch(connection, deadline);
    const std::string head = make_head(request, url, options_.user_agent);
    const std::array<asio::const_buffer, 2> pieces{
        asio::buffer(head), asio::buffer(body_of(request))
    };
    error_code write_error;
    const std::size_t written = co_await asio::async_write(
        connection->stream, pieces, asio::redirect_error(kAwait, write_error)
    );
    tried.sent_anything = written > 0;
    if (request.was_sent != nullptr && tried.sent_anything) {
        *request.was_sent = true;
    }
    if (guard.fired() || write_error == asio::error::operation_aborted ||
        (write_error && written == 0)) {
        tried.result = fail(to_client_error(url, write_error, guard.fired()));
        co_return tried;
    }
    // After a failed write too: a server that refuses a large body answers and closes before it has
    // read it.
    ReadBuffer buffer;
    ClientResponse response;
    std::optional<ResponseParser> parser;
    error_code error;
    do {
        response = ClientResponse();
        parser.emplace(response, request.response_bytes_max, sink);
        parser->skip(request.method == "HEAD");
        error = co_await receive(*connection, *parser, buffer, absorb, tried);
    } while (!error && response.status / 100 == 1 && response.status != 101);
    if (parser->failure()) {
        tried.result = fail(std::move(*parser->failure()));
        co_return tried;
    }
    if (guard.fired() || error || response.status == 101) {
        const bool malformed =
            (error.category() == make_error_code(http::error::bad_value).category() &&
             error != http::error::partial_message) ||
            response.status == 101;
        const auto& cause = write_error && !tried.received_anything ? write_error : error;
        tried.result =
            malformed && !guard.fired()
                ? fail(
                      Code::protocol_error, origin_name(url) + ": the answer is not valid HTTP/1.1"
                  )
                : fail(to_client_error(url, cause, guard.fired()));
        co_return tried;
    }
    tried.reusable = !write_error && parser->keep_alive() && buffer.empty();
    tried.result = std::move(response);
    co_return tried;
}

Task<error_code> Client::Impl::receive(
    ClientConnection& connection,
    ResponseParser& parser,
    ReadBuffer& buffer,
    const Absorb& absorb,
    Attempt& into
) {
    std::size_t head_bytes = 0;
    error_code error;
    while (true) {
        if (!buffer.empty()) {
            const auto unread = buffer.view();
            const std::size_t used =
                parser.put(asio::const_buffer(unread.data(), unread.size()), error);
            buffer.consume(used);
            head_bytes += parser.is_header_done() ? 0 : used;
            if (error && error != http::error::need_more) {
                co_return error;
            }
            if (head_bytes > ResponseParser::kHeaderBytesMax) {
                co_return http::error::header_limit;
            }
            if (parser.is_done()) {
                co_return error_code();
            }
            if (!error && used > 0 && !buffer.empty()) {
                continue;
            }
        }
        if (absorb) {
            auto absorbed = co_await absorb();
            if (!absorbed) {
                parser.failure() = std::move(absorbed.error());
                co_return http::error::body_limit;
            }
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return asio::error::operation_aborted;
        }
        const std::size_t count = co_await connection.stream.async_read_some(
            buffer.prepare(kReadBytes), asio::redirect_error(kAwait, error)
        );
        if (error == asio::error::eof && parser.got_some()) {
            parser.put_eof(error);
            co_return error;
        }
        if (error) {
            co_return error;
        }
        into.received_anything = true;
        buffer.commit(count);
    }
}

Task<Result<std::unique_ptr<Passage>>> Client::Impl::pass(
    ClientRequest request, std::optional<std::uint64_t> body_bytes
) {
    const auto self = shared_from_this();
    auto url = Url::parse(request.url);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    url->socket = request.socket;
    auto checked = check(request);
    if (!checked) {
        co_return fail(std::move(checked.error()));
    }
    auto opened = co_await connector_.open(*url, request.verify_tls, Deadline::in(request.timeout));
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    const std::string framing = !body_bytes ? "Transfer-Encoding: chunked\r\n"
                                : *body_bytes > 0 || request.method == "POST" ||
                                        request.method == "PUT" || request.method == "PATCH"
                                    ? "Content-Length: " + std::to_string(*body_bytes) + "\r\n"
                                    : "";
    auto passage = make_passage(
        std::move(*opened),
        *url,
        {request.timeout, request.method == "HEAD", !body_bytes.has_value()}
    );
    auto begun = co_await passage->begin(make_head(request, *url, options_.user_agent, framing));
    if (!begun) {
        co_return fail(std::move(begun.error()));
    }
    co_return std::unique_ptr<Passage>(std::move(passage));
}

Task<Result<std::unique_ptr<WebSocket>>> Client::Impl::connect(
    std::string text, WebSocketOptions options, Millis timeout, std::string unix_socket
) {
    const auto self = shared_from_this();
    const Deadline deadline = Deadline::in(timeout);
    auto url = Url::parse(text);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    url->socket = std::move(unix_socket);
    if (url->scheme != "ws" && url->scheme != "wss") {
        co_return fail(Code::invalid_argument, "URL scheme must be ws or wss");
    }
    const auto opened = co_await connector_.open(*url, true, deadline);
    if (!opened) {
        co_return fail(opened.error());
    }
    const auto left = std::max(deadline.left(), Millis(1));
    auto socket = co_await open_websocket(
        std::move((*opened)->stream), *url, std::move(options), left, options_.user_agent
    );
    if (!socket) {
        socket.error().message.insert(0, origin_name(*url) + ": ");
    }
    co_return socket;
}

Client::Client(Executor executor, ClientOptions options)
    : impl_(std::make_shared<Impl>(executor, std::move(options))) {}

Client::~Client() {
    impl_->close_idle();
}

Result<> Client::identify(const std::vector<ClientIdentity>& identities) {
    return impl_->connector().identify(identities);
}

Task<Result<ClientResponse>> Client::send(ClientRequest request) {
    return impl_->perform(std::move(request), Sink(), Absorb());
}

Task<Result<ClientResponse>> Client::download(ClientRequest request, Sink sink, Absorb absorb) {
    return impl_->perform(std::move(request), std::move(sink), std::move(absorb));
}

Task<Result<std::unique_ptr<Passage>>> Client::pass(
    ClientRequest request, std::optional<std::uint64_t> body_bytes
) {
    return impl_->pass(std::move(request), body_bytes);
}

Task<Result<std::unique_ptr<WebSocket>>> Client::connect(
    std::string url, WebSocketOptions options, Millis timeout, std::string socket
) {
    return impl_->connect(std::move(url), std::move(options), timeout, std::move(socket));
}

void Client::close_idle() {
    impl_->close_idle();
}

}  // namespace comfyd::net
