#include "net/websocket.hpp"

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "net/websocket_stream.hpp"

namespace comfyd::net {

namespace beast = boost::beast;
namespace websocket = beast::websocket;

// Found by Beast: how a WebSocket ends its transport. TCP's way is used for TLS too, because the
// WebSocket's own closing handshake has already proved that nothing was cut off.
template <class TeardownHandler>
void async_teardown(beast::role_type role, Stream& stream, TeardownHandler&& handler) {
    constexpr std::chrono::seconds kTeardownTimeout{1};
    stream.close_after(kTeardownTimeout);
    websocket::async_teardown(role, stream.socket(), std::forward<TeardownHandler>(handler));
}
void beast_close_socket(Stream& stream) {
    stream.close();
}

namespace {

constexpr std::chrono::seconds kHandshakeTimeout{10};
// Only clients have it, who must mask what they write: those of lines carry whole files.
constexpr std::size_t kWriteBufferBytes = 64 * 1024;

// At most what a close frame holds, cut between characters.
std::string_view fit_reason(std::string_view reason) {
    constexpr std::size_t kReasonBytesMax = 123;
    if (reason.size() <= kReasonBytesMax) {
        return reason;
    }
    std::size_t end = kReasonBytesMax;
    while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) {
        --end;
    }
    return reason.substr(0, end);
}

// Shared by the WebSocket and the operations that may still run when it is destroyed.
class Core final : public WebSocketControl, public std::enable_shared_from_this<Core> {
public:
    explicit Core(Stream transport) : stream(std::move(transport)) {}

    void configure(const WebSocketOptions& options, std::chrono::milliseconds handshake_timeout) {
        stream.set_option(
            websocket::stream_base::timeout{handshake_timeout, options.idle_timeout, true}
        );
        stream.read_message_max(options.message_bytes_max);
        stream.auto_fragment(false);
        stream.write_buffer_bytes(kWriteBufferBytes);
    }

    void abort() override {
        aborted = true;
        beast::get_lowest_layer(stream).close();
    }

    Task<> go_away() override {
        return close(
            shared_from_this(), websocket::close_code::going_away, "the server shuts down"
        );
    }

    // Holds `self`: the handler that owns the WebSocket may end while the server closes it.
    static Task<> close(std::shared_ptr<Core> self, unsigned short code, std::string reason) {
        if (self->closing || self->aborted || !self->stream.is_open()) {
            co_return;
        }
        self->closing = true;
        const auto text = fit_reason(reason);
        const websocket::close_reason why(
            static_cast<websocket::close_code>(code), beast::string_view(text.data(), text.size())
        );
        error_code ignored;
        co_await self->stream.async_close(why, asio::redirect_error(kAwait, ignored));
        beast::get_lowest_layer(self->stream).close();
    }

    // `cancelled`: the task that waited is.
    Error to_error(const error_code& error, bool cancelled) const {
        if (aborted || closing || cancelled) {
            return {Code::cancelled, "the WebSocket was closed on this side"};
        }
        if (error == websocket::error::message_too_big ||
            error == websocket::error::buffer_overflow) {
            return {
                Code::payload_too_large, "the peer sent a WebSocket message above the size limit"
            };
        }
        // Whatever the end of the connection looked like after the peer had said why.
        const auto& reason = stream.reason();
        if (reason.code != websocket::close_code::none) {
            return {
                Code::connection_failed,
                "the peer closed the WebSocket (" + std::to_string(reason.code) + ")"
            };
        }
        if (error == asio::error::operation_aborted) {
            return {
                Code::connection_failed, "the peer broke the WebSocket protocol and did not close"
            };
        }
        if (error == beast::error::timeout) {
            return {Code::connection_failed, "the WebSocket's peer does not answer pings"};
        }
        const bool protocol =
            error.category() == make_error_code(websocket::error::closed).category();
        return {
            protocol ? Code::protocol_error : Code::connection_failed,
            "WebSocket failed: " + error.message()
        };
    }

    websocket::stream<Stream, false> stream;
    bool aborted = false;
    bool closing = false;
};

class Session final : public WebSocket {
public:
    explicit Session(std::shared_ptr<Core> core) : core_(std::move(core)) {}
    ~Session() override { core_->abort(); }

    Task<Result<WebSocketMessage>> read() override { return read_from(core_); }
    Task<Result<>> write(std::string data, bool binary) override {
        return write_to(core_, std::move(data), binary);
    }
    Task<> close(unsigned short code, std::string reason) override {
        return Core::close(core_, code, std::move(reason));
    }
    void abort() override { core_->abort(); }

private:
    static Task<Result<WebSocketMessage>> read_from(std::shared_ptr<Core> core) {
        const bool stop = co_await is_cancelled();
        if (stop || core->aborted || core->closing) {
            co_return fail(Code::cancelled, "the WebSocket was closed on this side");
        }
        WebSocketMessage message;
        auto buffer = asio::dynamic_buffer(message.data);
        error_code error;
        co_await core->stream.async_read(buffer, asio::redirect_error(kAwait, error));
        if (error) {
            const bool cancelled = co_await is_cancelled();
            co_return fail(core->to_error(error, cancelled));
        }
        message.binary = core->stream.got_binary();
        co_return message;
    }

    static Task<Result<>> write_to(std::shared_ptr<Core> core, std::string data, bool binary) {
        const bool stop = co_await is_cancelled();
        if (stop || core->aborted || core->closing) {
            co_return fail(Code::cancelled, "the WebSocket was closed on this side");
        }
        core->stream.binary(binary);
        error_code error;
        co_await core->stream.async_write(asio::buffer(data), asio::redirect_error(kAwait, error));
        if (error) {
            const bool cancelled = co_await is_cancelled();
            co_return fail(core->to_error(error, cancelled));
        }
        co_return Result<>();
    }

    std::shared_ptr<Core> core_;  // with its operations
};

bool has_token(std::string_view list, std::string_view token) {
    while (!list.empty()) {
        const auto end = std::min(list.find(','), list.size());
        auto item = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        const auto first = std::min(item.find_first_not_of(" \t"), item.size());
        item = item.substr(first, item.find_last_not_of(" \t") + 1 - first);
        if (equal_ignoring_case(item, token)) {
            return true;
        }
    }
    return false;
}

beast::string_view as_beast(std::string_view text) {
    return {text.data(), text.size()};
}

}  // namespace

bool is_websocket_handshake(const Request& request) {
    const auto& headers = request.headers;
    return request.method == Method::get && has_token(headers.get("Connection"), "upgrade") &&
           has_token(headers.get("Upgrade"), "websocket") &&
           headers.get("Sec-WebSocket-Version") == "13" &&
           !headers.get("Sec-WebSocket-Key").empty() && headers.contains("Host");
}

Task<Result<AcceptedWebSocket>> accept_websocket(
    Stream stream, Request request, WebSocketOptions options
) {
    const auto core = std::make_shared<Core>(std::move(stream));
    core->configure(options, kHandshakeTimeout);
    const auto decorate = [headers = options.headers](websocket::response_type& response) {
        for (const auto& [name, value] : headers.all()) {
            response.set(as_beast(name), as_beast(value));
        }
    };
    core->stream.set_option(websocket::stream_base::decorator(decorate));

    beast::http::request<beast::http::empty_body> handshake;
    handshake.method(beast::http::verb::get);
    handshake.target(as_beast(request.target));
    handshake.version(11);
    for (const auto& [name, value] : request.headers.all()) {
        handshake.insert(as_beast(name), as_beast(value));
    }
    error_code error;
    co_await core->stream.async_accept(handshake, asio::redirect_error(kAwait, error));
    if (error) {
        const bool cancelled = co_await is_cancelled();
        co_return fail(core->to_error(error, cancelled));
    }
    core->stream.set_option(websocket::stream_base::decorator([](websocket::response_type&) {}));
    co_return AcceptedWebSocket{std::make_unique<Session>(core), core};
}

Task<Result<std::unique_ptr<WebSocket>>> open_websocket(
    Stream stream, Url url, WebSocketOptions options, Millis timeout, std::string user_agent
) {
    const auto core = std::make_shared<Core>(std::move(stream));
    core->configure(options, timeout);
    const auto decorate = [headers = options.headers,
                           user_agent](websocket::request_type& request) {
        request.set(beast::http::field::user_agent, user_agent);
        for (const auto& [name, value] : headers.all()) {
            request.set(as_beast(name), as_beast(value));
        }
    };
    core->stream.set_option(websocket::stream_base::decorator(decorate));
    websocket::response_type response;
    const std::string host = url.host_header();
    error_code error;
    co_await core->stream.async_handshake(
        response, host, url.target, asio::redirect_error(kAwait, error)
    );
    if (!error) {
        core->configure(options, kHandshakeTimeout);
        co_return std::make_unique<Session>(core);
    }
    if (error == websocket::error::upgrade_declined) {
        co_return fail(
            Code::protocol_error,
            "the server declined the WebSocket with status " +
                std::to_string(response.result_int()),
            {{"status", response.result_int()}}
        );
    }
    if (error == beast::error::timeout) {
        co_return fail(
            Code::request_timeout, "the server did not answer the WebSocket handshake in time"
        );
    }
    const bool cancelled = co_await is_cancelled();
    co_return fail(core->to_error(error, cancelled));
}

}  // namespace comfyd::net
