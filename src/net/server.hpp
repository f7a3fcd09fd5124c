// The HTTP/1.1 and WebSocket server.
//
// N io threads, each with its own io_context and its own SO_REUSEPORT acceptor (of a unix socket:
// its own descriptor); a connection stays on the thread that accepted it, and handlers run there as
// coroutines. Every size, count and time
// has a limit. The server knows no routes: one handler gets every request.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "net/descriptor.hpp"
#include "net/http.hpp"
#include "net/proxies.hpp"
#include "net/websocket.hpp"

namespace comfyd::net {

class TlsIdentity;

struct ServerLimits {
    std::size_t header_bytes_max = 32 * 1024;
    std::uint64_t body_bytes_max = 100 * 1024 * 1024;
    std::size_t connections_max = 16'384;  // over all threads; more are answered 503 and closed
    // Of those that the handler does not trust yet, from one address; 0: no limit.
    std::size_t strangers_per_address_max = 0;
    // From the first byte of a request to the end of its headers; also for a TLS handshake.
    std::chrono::seconds header_timeout{15};
    std::chrono::seconds body_timeout{300};  // for the whole of it
    std::chrono::seconds stall_timeout{30};  // for its next byte
    // Of bodies that are read whole, from their first byte to the end of the answer, all requests
    // together: what would go beyond is answered with Code::rate_limited.
    std::uint64_t bodies_bytes_max = 1024ULL * 1024 * 1024;
    std::chrono::seconds idle_timeout{75};   // keep-alive connection with no request
    std::chrono::seconds write_timeout{60};  // a client that does not read
};

struct Request {
    Method method = Method::get;
    std::string method_name;  // as sent, for answers about unknown methods
    std::string target;       // as sent
    std::string path;         // target without query, still percent-encoded
    std::string query;        // without '?'
    Headers headers;
    // Address of the client, without port; where a trusted proxy asks, of whom it asks for;
    // loopback on a unix socket.
    std::string peer;
    std::string scheme = "http";
};

struct Response {
    int status = 200;
    Headers headers;
    std::string body;
};

// A part of a file as the body of an answer.
struct FileBody {
    std::string path;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

// One request and the way to answer it. Lives as long as the handler runs. All members are to be
// used on the connection's thread only. A failed write means that the client is gone: return.
class Exchange {
public:
    virtual ~Exchange() = default;

    virtual const Request& request() const = 0;

    // The whole body; Code::payload_too_large above `bytes_max` (or the server's limit),
    // Code::rate_limited when the bodies of all requests are too many, Code::request_timeout,
    // Code::connection_failed.
    virtual Task<Result<std::string>> read_body(std::uint64_t bytes_max) = 0;
    // The next piece, at most `into_bytes`; 0 at the end. Do not mix with read_body.
    virtual Task<Result<std::size_t>> read_some(char* into, std::size_t into_bytes) = 0;

    // A whole answer. Content-Length, Date and Connection are set here; gzip is applied to text and
    // JSON bodies above 1 KB where the client accepts it; HEAD sends no body; ETag and
    // If-None-Match are the handler's business.
    virtual Task<Result<>> send(Response response) = 0;
    // response.body is ignored, response.status and headers are used.
    virtual Task<Result<>> send_file(Response head, FileBody file) = 0;

    // An answer in pieces: chunked, or, where the head has a Content-Length, of just that length.
    // After begin_stream any number of writes, then end_stream. Each write is flushed. A client
    // that does not read for write_timeout fails the write. One that ends early is cut off.
    virtual Task<Result<>> begin_stream(Response head) = 0;
    virtual Task<Result<>> write_stream(std::string data) = 0;
    virtual Task<Result<>> end_stream() = 0;
    // Resolves true when the client closed the connection while we stream, false when `until` is
    // over. For streams that may be silent for long: the writer learns of a dead client without
    // writing.
    virtual Task<bool> wait_closed(Millis until) = 0;

    // Code::upgrade_required (426 is then the handler's answer) when the request is no WebSocket
    // handshake.
    virtual Task<Result<std::unique_ptr<WebSocket>>> upgrade(WebSocketOptions options) = 0;

    // The peer has shown who it is: its connection counts no more among the strangers of its
    // address.
    virtual void trust_peer() = 0;

    // True once anything was sent: a handler that returns without is answered 500 by the server.
    virtual bool answered() const = 0;
    virtual Executor executor() const = 0;
    // True while the server shuts down: streams should end soon.
    virtual bool draining() const = 0;
};

using Handler = std::function<Task<>(Exchange&)>;

struct ServerCounters {
    std::uint64_t connections_open = 0;
    std::uint64_t connections_total = 0;
    std::uint64_t connections_refused = 0;
    std::uint64_t bodies_bytes = 0;  // of requests that are being read or answered now
};

struct Endpoint {
    std::string host = "127.0.0.1";  // address or name; "localhost" and "::1" work
    std::uint16_t port = 0;          // 0: a free one
    std::string socket{};            // path of a unix socket, listened on instead
    bool is_tls = false;             // what is served there
    // "127.0.0.1:8080", "[::1]:8080", ":8080", "unix:/run/comfyd.sock"
    static Result<Endpoint> parse(std::string_view text);
    bool is_loopback() const;
    std::string to_string() const;  // as parse() reads it
    std::string url() const;        // "http://127.0.0.1:8080", "https://…", "unix:/run/comfyd.sock"
};

class Server {
public:
    // `contexts`: one per io thread, run by the caller; they outlive the server.
    Server(
        std::vector<boost::asio::io_context*> contexts,
        ServerLimits limits,
        Handler handler,
        TrustedProxies proxies = {}
    );
    ~Server();  // REQUIRES: stop() finished, or listen() never succeeded
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Before listen(): only trusted proxies may connect, and say first whom they speak for (the
    // PROXY protocol, version 1 or 2).
    void demand_proxy_line();

    // Binds and starts to accept. Code::invalid_argument / Code::conflict (address in use) with the
    // reason. Returns the endpoint with its real port. Call before the io threads run or from any
    // thread. With an identity clients must speak TLS; on a unix socket nobody needs to.
    Result<Endpoint> listen(
        const Endpoint& endpoint, std::shared_ptr<const TlsIdentity> identity = nullptr
    );

    // Serves a connected socket as if it had been accepted on a unix socket. After listen() and
    // before stop(); any thread.
    void take(Descriptor connection);

    // Stops accepting, closes idle connections, sets draining, waits until the requests in progress
    // are answered or `grace` is over, then closes what is left. Blocks; call from a thread that
    // runs none of the contexts, while they still run.
    void stop(Millis grace);

    ServerCounters counters() const;  // any thread

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::net
