#include "net/server_connection.hpp"

#include <exception>

#include "base/log.hpp"
#include "net/request_parser.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 4096;
constexpr std::uint64_t kDiscardBytesMax = 256 * 1024;
constexpr std::chrono::seconds kLingerTimeout{2};
constexpr std::uint64_t kHandshakesMax = 512;  // at a time: each holds its keys and buffers

// A line that goes on in the next one (obs-fold): proxies read it in different ways, so RFC 9112
// lets a server refuse it.
bool is_folded(std::string_view head) {
    return head.find("\r\n ") != std::string_view::npos ||
           head.find("\r\n\t") != std::string_view::npos;
}

// "GET / HTTP/2.0": well formed, but not ours.
bool names_other_version(std::string_view head) {
    const auto line = head.substr(0, head.find("\r\n"));
    const auto at = line.rfind(" HTTP/");
    if (at == std::string_view::npos) {
        return false;
    }
    const auto version = line.substr(at + 6);
    return version.size() == 3 && version[1] == '.' && version[0] >= '0' && version[0] <= '9' &&
           version[2] >= '0' && version[2] <= '9';
}

}  // namespace

Connection::Connection(
    Shard& shard, Transport transport, std::string peer, std::string share, bool is_proxy
)
    : shard_(shard),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      is_proxy_(is_proxy),
      stranger_share_(std::move(share)) {
    place_ = shard_.open.insert(shard_.open.end(), this);
}

Connection::~Connection() = default;

// Not in the destructor: a queued handler may hold the connection longer than the shard lives.
void Connection::leave() {
    trust_peer();
    let_body_go();
    shard_.open.erase(place_);
    shard_.state.connections_open.fetch_sub(1, std::memory_order_relaxed);
}

void Connection::trust_peer() {
    if (!stranger_share_.empty()) {
        shard_.state.strangers.give_back(std::exchange(stranger_share_, {}));
    }
}

void Connection::release_memory() {
    buffer_.release();
    parser_.reset();
}

bool Connection::draining() const {
    return shard_.state.draining.load(std::memory_order_relaxed);
}

void Connection::end_if_overdue(Ticks::time_point now) {
    if (now < deadline_) {
        return;
    }
    expired_ = true;
    wait_for_ever();
    error_code ignored;
    transport_.socket().cancel(ignored);
}

void Connection::begin_drain() {
    if (idle_) {
        abort();
    }
    if (closed_) {
        closed_->notify(
        );  // a silent stream looks at draining() now instead of at its next heartbeat
    }
    if (const auto websocket = websocket_.lock()) {
        shard_.connections.spawn("websocket close", websocket->go_away());
    }
}

void Connection::abort() {
    aborted_ = true;
    transport_.close();
    if (closed_) {
        closed_->notify();
    }
    if (const auto websocket = websocket_.lock()) {
        websocket->abort();
    }
}

Task<> Connection::run(std::shared_ptr<Connection> self) {
    struct Leave {
        Connection& connection;
        ~Leave() { connection.leave(); }
    };
    const Leave leave{*self
    };  // also when an exception ends us: the sweep must not meet a dead connection
    const bool is_known = co_await self->hear_proxy();
    bool is_open = false;
    if (is_known) {
        is_open = co_await self->shake_hands();
    }
    if (is_open) {
        co_await self->serve();
    }
    self->stop_watch();
    self->transport_.end();
    if (self->input_left_ && !self->aborted_ && !self->peer_closed_) {
        co_await self->linger();
    }
    self->transport_.close();
}

// False when the connection is of no use.
Task<bool> Connection::shake_hands() {
    if (!transport_.is_tls()) {
        co_return true;
    }
    auto& others = shard_.state.handshakes;
    if (others.fetch_add(1) >= kHandshakesMax) {
        others.fetch_sub(1);
        shard_.state.connections_refused.fetch_add(1, std::memory_order_relaxed);
        co_return false;
    }
    wait_until(shard_.state.limits.header_timeout);
    const error_code error = co_await transport_.handshake();
    wait_for_ever();
    others.fetch_sub(1);
    if (transport_.was_plain_http()) {
        tell_to_use_https();
    }
    co_return !error && !aborted_;
}

// In plain bytes, which is all that such a client understands.
void Connection::tell_to_use_https() {
    const auto problem =
        make_problem(400, "invalid_argument", "this port speaks TLS: use https:// in the address");
    std::string text;
    append_head(text, problem, {.keep_alive = false, .content_length = problem.body.size()});
    error_code ignored;
    transport_.socket().send(asio::buffer(text + problem.body), 0, ignored);
    input_left_ = true;
}

Task<> Connection::serve() {
    do {
        const bool complete = co_await read_head();
        if (!complete) {
            co_return;
        }
        co_await call_handler();
        stop_watch();
        if (!answered_ && (aborted_ || peer_closed_)) {
            co_return;  // whoever asked has gone
        }
        if (!answered_) {
            log::error(
                "handler did not answer",
                {{"method", request_.method_name}, {"path", request_.path}}
            );
            co_await answer({500, "internal", "the request was not answered"});
        }
        if (stream_open_ || aborted_ || peer_closed_) {
            co_return;
        }
        if (body_ != Body::none) {
            const bool clean = co_await discard_body();
            input_left_ = !clean;
        }
        if (input_left_) {
            co_return;
        }
    } while (keep_alive_ && !draining());
}

Task<bool> Connection::read_head() {
    if (!start_request()) {
        co_return false;
    }
    while (true) {
        if (!buffer_.empty()) {
            if (idle_) {
                idle_ = false;
                wait_until(shard_.state.limits.header_timeout);
            }
            const auto problem = parse_head();
            if (problem) {
                co_await answer(*problem);
                input_left_ = true;
                co_return false;
            }
            if (parser_->is_header_done()) {
                wait_for_ever();
                name_client();
                begin_body();
                co_return true;
            }
        }
        const auto [error, count] = co_await transport_.read_some(buffer_.prepare(kReadBytes));
        if (!error) {
            buffer_.commit(count);
            continue;
        }
        if (expired_ && !idle_ && !aborted_) {
            co_await answer({408, "request_timeout", "the request's headers did not arrive in time"}
            );
        }
        co_return false;
    }
}

void Connection::name_client() {
    request_.peer = peer_;
    bool is_https = transport_.is_tls();
    if (is_proxy_) {
        auto client = shard_.state.proxies.client(peer_, is_https, request_.headers);
        request_.peer = std::move(client.address);
        is_https = client.is_https;
    }
    request_.scheme = is_https ? "https" : "http";
}

// False when there will be no next request.
bool Connection::start_request() {
    request_ = Request();
    parser_ = std::make_unique<RequestParser>(request_, shard_.state.limits.header_bytes_max);
    head_bytes_ = 0;
    let_body_go();
    body_ = Body::none;
    answered_ = false;
    expired_ = false;
    stream_open_ = false;
    idle_ = true;
    wait_until(shard_.state.limits.idle_timeout);
    return !aborted_ && !(draining() && buffer_.empty());
}

std::optional<Connection::Problem> Connection::parse_head() {
    // RFC 9112, 2.2: an empty line before a request line is ignored.
    while (!parser_->got_some() && buffer_.view().starts_with("\r\n")) {
        buffer_.consume(2);
    }
    if (buffer_.empty() || (!parser_->got_some() && buffer_.view() == "\r")) {
        return std::nullopt;
    }
    const auto unread = buffer_.view();
    error_code error;
    const std::size_t used = parser_->put(asio::const_buffer(unread.data(), unread.size()), error);
    if (error && error != http::error::need_more) {
        return judge(error);
    }
    if (is_folded(unread.substr(0, used))) {
        return Problem{400, "invalid_argument", "a header line must not begin with a blank"};
    }
    buffer_.consume(used);
    // Beast's limit is for what it sees at once; this one is for the whole head.
    head_bytes_ += used;
    const std::size_t head_bytes = head_bytes_ + (parser_->is_header_done() ? 0 : buffer_.size());
    if (head_bytes > shard_.state.limits.header_bytes_max) {
        return judge(http::error::header_limit);
    }
    if (parser_->is_header_done() && parser_->expects_unknown()) {
        return Problem{417, "expectation_failed", "Expect: only 100-continue is supported"};
    }
    return std::nullopt;
}

Connection::Problem Connection::judge(const error_code& error) const {
    switch (parser_->fault()) {
        case HeadFault::target_too_long:
            return {414, "uri_too_long", "the request target is too long"};
        case HeadFault::too_many_fields:
            return {431, "header_too_large", "the request has too many header fields"};
        case HeadFault::transfer_encoding:
            return {
                400, "invalid_argument", "Transfer-Encoding must be chunked, and HTTP/1.1 be used"
            };
        case HeadFault::host:
            return {400, "invalid_argument", "the request must have one Host header"};
        case HeadFault::none:
            break;
    }
    const auto unread = buffer_.view();
    if (error == http::error::header_limit) {
        const bool in_request_line =
            head_bytes_ == 0 && unread.find('\n') == std::string_view::npos;
        if (in_request_line) {
            return {414, "uri_too_long", "the request target is too long"};
        }
        return {431, "header_too_large", "the request's headers are too large"};
    }
    if (error == http::error::bad_version && names_other_version(unread)) {
        return {505, "unsupported_version", "use HTTP/1.1"};
    }
    return {400, "invalid_argument", "the request is not valid HTTP/1.1"};
}

void Connection::begin_body() {
    http11_ = parser_->http11();
    keep_alive_ = parser_->keep_alive();
    continue_expected_ = parser_->expects_continue() && http11_ && !parser_->is_done();
    body_started_ = false;
    body_received_ = 0;
    if (parser_->is_done()) {
        return;
    }
    body_ = parser_->chunked() ? Body::chunked : Body::sized;
    body_left_ = parser_->chunked() ? 0 : *parser_->content_length();
}

Task<> Connection::answer(Problem problem) {
    keep_alive_ = false;
    const auto sent = co_await send(make_problem(problem.status, problem.code, problem.message));
    if (!sent) {
        peer_closed_ = true;
    }
}

Task<> Connection::call_handler() {
    try {
        co_await shard_.state.handler(*this);
        co_return;
    } catch (const std::exception& exception) {
        log::error(
            "handler failed",
            {{"method", request_.method_name}, {"path", request_.path}, {"error", exception.what()}}
        );
    } catch (...) {
        log::error("handler failed", {{"path", request_.path}, {"error", "unknown exception"}});
    }
    keep_alive_ = false;
    if (!answered_) {
        co_await answer({500, "internal", "the request failed because of an internal error"});
    }
}

// True when the next request can be read: nothing of this one's body is left.
Task<bool> Connection::discard_body() {
    if (continue_expected_ || !keep_alive_ ||
        (body_ == Body::sized && body_left_ > kDiscardBytesMax)) {
        co_return false;
    }
    std::array<char, 4096> scratch;
    std::uint64_t discarded = 0;
    while (body_ != Body::none && discarded <= kDiscardBytesMax) {
        const auto count = co_await read_some(scratch.data(), scratch.size());
        if (!count) {
            co_return false;
        }
        discarded += *count;
    }
    co_return body_ == Body::none;
}

// Closing a socket with unread input resets the connection, and the answer may be lost with it. So
// the rest is read for a moment and thrown away.
Task<> Connection::linger() {
    wait_until(kLingerTimeout);
    std::array<char, 4096> scratch;
    error_code error;
    while (!error) {
        co_await transport_.socket().async_read_some(
            asio::buffer(scratch), asio::redirect_error(kAwait, error)
        );
    }
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::upgrade(WebSocketOptions options) {
    if (!is_websocket_handshake(request_)) {
        co_return fail(
            Code::upgrade_required, "this is a WebSocket endpoint: connect with a WebSocket client"
        );
    }
    // RFC 6455 forbids a client to send before it has our answer; a proxy that mixed up requests
    // might.
    if (!buffer_.empty() || body_ != Body::none || answered_ || aborted_) {
        co_return fail(Code::protocol_error, "bytes follow the WebSocket handshake too early");
    }
    stop_watch();
    answered_ = true;
    keep_alive_ = false;
    release_memory();
    auto accepted = co_await accept_websocket(
        std::move(transport_).into_stream(), request_, std::move(options)
    );
    if (!accepted) {
        co_return fail(std::move(accepted.error()));
    }
    websocket_ = accepted->control;
    if (aborted_) {
        accepted->socket->abort();
    } else if (draining()) {  // it began during the handshake, when there was nothing to tell
        shard_.connections.spawn("websocket close", accepted->control.lock()->go_away());
    }
    co_return std::move(accepted->socket);
}

}  // namespace comfyd::net
