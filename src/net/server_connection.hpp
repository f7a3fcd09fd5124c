// Internal to net: one client connection and the thread it lives on.
//
// A Connection is an Exchange, again and again: run() reads a head, calls the handler, clears up
// and starts over. There are no timers per operation; whoever waits sets `deadline_`, and the
// shard's sweep ends the wait of a connection whose deadline has passed.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <optional>

#include <boost/asio/cancellation_signal.hpp>

#include "net/address_shares.hpp"
#include "net/response_head.hpp"
#include "net/server.hpp"
#include "net/sockets.hpp"
#include "net/tls_identity.hpp"
#include "net/transport.hpp"
#include "net/websocket_stream.hpp"

namespace comfyd::net {

class RequestParser;
class Connection;

// What all threads of a server share.
struct ServerState {
    ServerState(ServerLimits server_limits, Handler server_handler, TrustedProxies trusted_proxies)
        : limits(server_limits),
          handler(std::move(server_handler)),
          proxies(std::move(trusted_proxies)),
          strangers(server_limits.strangers_per_address_max) {}
    const ServerLimits limits;
    const Handler handler;
    const TrustedProxies proxies;
    std::shared_ptr<const TlsIdentity> identity;  // set before anything is accepted; may be none
    bool demands_proxy_line = false;              // likewise
    AddressShares strangers;
    std::atomic<bool> draining{false};
    std::atomic<std::uint64_t> bodies_bytes{0};
    std::atomic<std::uint64_t> handshakes{0};
    std::atomic<std::uint64_t> connections_open{0};
    std::atomic<std::uint64_t> connections_total{0};
    std::atomic<std::uint64_t> connections_refused{0};
};

// One io thread's part of a server. All members on that thread, but for the constructor.
struct Shard {
    Shard(asio::io_context& context, ServerState& server_state, Acceptor shard_acceptor);

    void start();
    void take(Descriptor connection);
    void begin_drain();
    void abort_all();
    // Returns when no connection and no task is left.
    Task<> drained();

    Executor executor;
    ServerState& state;  // the server's, which owns the shards too
    Acceptor acceptor;
    TaskGroup connections;
    TaskGroup service;
    std::list<Connection*> open;  // each removes itself when its task ends

private:
    Task<> accept_loop();
    Task<> sweep_loop();
    void admit(Socket socket, const SocketName& peer);
    void refuse(Socket socket, std::string_view message);
};

// Bytes to be written, in up to three pieces that somebody else owns.
struct Outgoing {
    std::array<asio::const_buffer, 3> pieces{};
    std::size_t first = 0;

    bool done() const { return first == pieces.size(); }
    void advance(std::size_t count);
};

class Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
public:
    // `share`: what it holds of its address's, as AddressShares named it.
    Connection(
        Shard& shard, Transport transport, std::string peer, std::string share, bool is_proxy
    );
    ~Connection() override;

    // The task of a connection: holds it, and ends when it is closed.
    static Task<> run(std::shared_ptr<Connection> self);

    void end_if_overdue(Ticks::time_point now);
    void begin_drain();
    void abort();

    const Request& request() const override { return request_; }
    Task<Result<std::string>> read_body(std::uint64_t bytes_max) override;
    Task<Result<std::size_t>> read_some(char* into, std::size_t into_bytes) override;
    Task<Result<>> send(Response response) override;
    Task<Result<>> send_file(Response head, FileBody file) override;
    Task<Result<>> begin_stream(Response head) override;
    Task<Result<>> write_stream(std::string data) override;
    Task<Result<>> end_stream() override;
    Task<bool> wait_closed(Millis until) override;
    Task<Result<std::unique_ptr<WebSocket>>> upgrade(WebSocketOptions options) override;
    void trust_peer() override;
    bool answered() const override { return answered_; }
    Executor executor() const override { return shard_.executor; }
    bool draining() const override;

private:
    enum class Body { none, sized, chunked };
    struct Problem {
        int status;
        std::string_view code;
        std::string_view message;
    };

    Task<> serve();
    Task<bool> hear_proxy();
    bool be_client(const asio::ip::address& client);
    Task<bool> shake_hands();
    void tell_to_use_https();
    Task<bool> read_head();
    void name_client();
    bool start_request();
    std::optional<Problem> parse_head();
    Problem judge(const error_code& error) const;
    void begin_body();
    Task<> answer(Problem problem);
    Task<> call_handler();
    Task<bool> discard_body();
    Task<> linger();
    void leave();
    void release_memory();

    Task<Result<>> expect_body();
    bool hold_body(std::uint64_t bytes);
    void let_body_go();
    Task<Result<std::size_t>> read_sized(char* into, std::size_t into_bytes);
    Task<Result<std::size_t>> read_chunked(char* into, std::size_t into_bytes);
    tl::unexpected<Error> body_failure(const error_code& error);
    tl::unexpected<Error> too_large(std::uint64_t bytes_max);

    Framing frame_answer(int status, std::optional<std::uint64_t> content_length);
    void compress(Response& response) const;
    // False when the peer is gone. What the socket does not take now stays in `out`.
    bool write_now(Outgoing& out, int flags);
    Task<Result<>> flush(Outgoing out);
    Task<Result<>> send_file_part(int file, std::uint64_t offset, std::uint64_t length);
    Task<Result<>> copy_file_part(int file, std::uint64_t offset, std::uint64_t length);
    tl::unexpected<Error> gone();
    static tl::unexpected<Error> answered_twice();

    void start_watch();
    void stop_watch();
    void on_readable(std::uint64_t generation, const error_code& error);

    void wait_until(std::chrono::seconds from_now) { deadline_ = Ticks::now() + from_now; }
    void wait_for_ever() { deadline_ = Ticks::time_point::max(); }

    Shard& shard_;
    Transport transport_;
    ReadBuffer buffer_;
    Request request_;
    std::string peer_;
    bool is_proxy_;               // the peer, and a trusted one
    std::string stranger_share_;  // empty once the peer is trusted
    std::unique_ptr<RequestParser> parser_;
    std::list<Connection*>::iterator place_;
    Ticks::time_point deadline_ = Ticks::time_point::max();

    std::size_t head_bytes_ = 0;
    Body body_ = Body::none;
    std::uint64_t body_left_ = 0;      // of a sized body
    std::uint64_t body_received_ = 0;  // of a chunked body
    std::uint64_t body_held_ = 0;      // of ServerState::bodies_bytes
    Ticks::time_point body_deadline_{};

    std::optional<Signal> closed_;  // made by the first wait_closed()
    asio::cancellation_signal watch_cancel_;
    std::uint64_t watch_generation_ = 0;
    std::weak_ptr<WebSocketControl> websocket_;

    bool idle_ = false;     // waits for the first byte of a request
    bool expired_ = false;  // the sweep ended the last wait
    bool aborted_ = false;  // the server is done with us
    bool peer_closed_ = false;
    bool watching_ = false;
    bool http11_ = true;
    bool keep_alive_ = false;
    bool continue_expected_ =
        false;  // the client waits for "100 Continue" before it sends the body
    bool body_started_ = false;
    bool input_left_ = false;  // bytes of the client may arrive that we will not read
    bool answered_ = false;
    bool stream_open_ = false;
    bool stream_chunked_ = false;
    std::optional<std::uint64_t> stream_left_;  // bytes, of one whose length was told
};

}  // namespace comfyd::net
