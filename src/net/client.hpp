// The HTTP and WebSocket client: keep-alive pool per origin, TLS with verification, time and size
// limits, and the guard that keeps requests to addresses of strangers out of the private network.
//
// A Client belongs to one executor: call it only there.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/task.hpp"
#include "net/http.hpp"
#include "net/passage.hpp"
#include "net/websocket.hpp"

namespace comfyd::net {

class Lines;

struct ClientRequest {
    std::string method = "GET";
    std::string url;
    Headers headers{};
    std::string body{};
    // Sent in place of `body`: bytes of the caller, which outlive the request.
    std::string_view lent_body{};
    Millis timeout{30'000};  // for all of it, redirects included
    std::uint64_t response_bytes_max = 64 * 1024 * 1024;
    bool verify_tls = true;
    // Path of a unix socket, connected to instead of the URL's host, or "worker://NAME" for a peer
    // that has called us (net/lines.hpp).
    std::string socket{};
    // Where given, becomes true when something of it goes out: whoever is asked may have acted on
    // it even if no answer comes. Outlives the request.
    bool* was_sent = nullptr;
};

struct ClientResponse {
    int status = 0;
    Headers headers{};
    std::string body{};
};

// Which addresses a client may connect to. Checked on the resolved address, for every connection,
// so that neither a name that resolves to a private address nor a redirect gets around it.
enum class AddressPolicy {
    any,          // workers that the operator configured; unix sockets, too
    public_only,  // URLs that clients sent: loopback, private, link-local, unique-local, multicast,
                  // unspecified, carrier-grade NAT, documentation and IPv4-mapped forms of them are
                  // refused
};
// True where public_only would refuse it. `address` is a textual IPv4 or IPv6 address.
bool is_private_address(const std::string& address);
// Whether a URL's host is one of those already by its text. Other names are looked at when they are
// resolved, for every connection.
bool is_private_host(const std::string& host);

struct ClientOptions {
    AddressPolicy policy = AddressPolicy::any;
    std::size_t idle_per_origin_max = 8;
    std::chrono::seconds idle_timeout{30};
    std::chrono::seconds connect_timeout{5};
    std::string user_agent = "comfyd/" COMFYD_VERSION;
    std::string ca_file{};  // PEM, in addition to the system's; for private authorities and tests
    std::shared_ptr<Lines> lines{};  // to peers that have called us; none: there are no such
};

// Who the client is to one server, and who that must be (mutual TLS).
struct ClientIdentity {
    std::string url;          // of the server; what is behind its host and port does not matter
    std::string certificate;  // PEM files, the first with the chain; both or none
    std::string key;
    std::string ca_file{};      // who alone may have signed the server's; empty: whom all trust
    std::string server_name{};  // that stands in the server's; empty: the host of the URL
};

class Client {
public:
    Client(Executor executor, ClientOptions options);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Before the first request, or on its executor: in place of those before, for connections that
    // are opened from then on. Code::config_invalid says which file cannot be used; nothing has
    // changed then.
    Result<> identify(const std::vector<ClientIdentity>& identities);

    // Any HTTP status is a success here. Redirects are not followed. A request on a pooled
    // connection that the peer had closed meanwhile is repeated once on a new one when nothing of
    // the answer had arrived and the method is safe (GET, HEAD) or `body` had not been sent;
    // otherwise Code::connection_failed. Code::address_refused, Code::connection_failed,
    // Code::request_timeout, Code::payload_too_large, Code::protocol_error, Code::cancelled.
    Task<Result<ClientResponse>> send(ClientRequest request);

    // As send(), but the body goes piece by piece to `sink` (on this executor); a failure it
    // returns ends the transfer. `sink` gets nothing unless the status is 2xx; of any other answer
    // the first 64 KB are the response's body, which stays empty otherwise.
    using Sink = std::function<Result<>(std::string_view piece)>;
    // Awaited between two reads, where given: nothing more is read until it is done with what the
    // sink took. A failure it returns ends the transfer, too.
    using Absorb = std::function<Task<Result<>>()>;
    Task<Result<ClientResponse>> download(ClientRequest request, Sink sink, Absorb absorb = {});

    // A request whose body, of so many bytes, is given in pieces; nullopt: in chunks, until it is
    // ended. Always on a connection of its own: what has gone out cannot be repeated. The request's
    // timeout is for each wait, and its own body is not sent.
    Task<Result<std::unique_ptr<Passage>>> pass(
        ClientRequest request, std::optional<std::uint64_t> body_bytes
    );

    Task<Result<std::unique_ptr<WebSocket>>> connect(
        std::string url, WebSocketOptions options, Millis timeout, std::string socket = {}
    );

    // Closes pooled connections.
    void close_idle();

private:
    class Impl;
    std::shared_ptr<Impl> impl_;  // shared with operations in flight
};

}  // namespace comfyd::net
