#include "net/server.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>

#include "base/assert.hpp"
#include "base/deadline.hpp"
#include "base/log.hpp"
#include "net/local_listener.hpp"
#include "net/server_connection.hpp"
#include "net/socket_name.hpp"

namespace comfyd::net {
namespace {

constexpr Millis kSweepInterval{250};
constexpr Millis kAcceptPause{100};
constexpr int kBacklog = 4096;

using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

Result<std::vector<tcp::endpoint>> candidates(const Endpoint& endpoint) {
    error_code error;
    const auto address = asio::ip::make_address(endpoint.host, error);
    if (!error) {
        return std::vector{tcp::endpoint(address, endpoint.port)};
    }
    asio::io_context context;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(endpoint.host, std::to_string(endpoint.port), error);
    if (error || found.empty()) {
        return fail(
            Code::invalid_argument,
            "cannot listen on '" + endpoint.host + "': it is no address of this machine"
        );
    }
    std::vector<tcp::endpoint> endpoints;
    for (const auto& entry : found) {
        endpoints.push_back(entry.endpoint());
    }
    return endpoints;
}

error_code open_acceptor(Acceptor& acceptor, const tcp::endpoint& endpoint, bool shared) {
    error_code error;
    acceptor.open(StreamProtocol(endpoint.protocol()), error);
    if (!error) {
        acceptor.set_option(Acceptor::reuse_address(true), error);
    }
    if (!error && shared) {
        acceptor.set_option(ReusePort(true), error);
    }
    if (!error) {
        acceptor.bind(SocketName(endpoint), error);
    }
    if (!error) {
        acceptor.listen(kBacklog, error);
    }
    return error;
}

// SO_REUSEPORT would also let a second server of the same user share the port without a word. A
// plain socket finds that out.
error_code probe(asio::io_context& context, const tcp::endpoint& endpoint) {
    Acceptor acceptor(context);
    return open_acceptor(acceptor, endpoint, false);
}

error_code open_acceptors(
    const std::vector<asio::io_context*>& contexts,
    tcp::endpoint& endpoint,
    std::vector<Acceptor>& into
) {
    const bool shared = contexts.size() > 1;
    if (shared && endpoint.port() != 0) {
        if (const auto error = probe(*contexts.front(), endpoint)) {
            return error;
        }
    }
    into.clear();
    for (auto* context : contexts) {
        Acceptor acceptor(*context);
        if (const auto error = open_acceptor(acceptor, endpoint, shared)) {
            return error;
        }
        endpoint = to_tcp(acceptor.local_endpoint());  // the others must use the first one's port
        into.push_back(std::move(acceptor));
    }
    return {};
}

// All threads accept from one queue, each through a descriptor of its own.
Result<std::vector<Acceptor>> open_local_acceptors(
    const std::vector<asio::io_context*>& contexts, const std::string& path
) {
    const auto listener = listen_locally(path, kBacklog);
    if (!listener) {
        return fail(listener.error());
    }
    std::vector<Acceptor> acceptors;
    for (auto* context : contexts) {
        const bool last = context == contexts.back();
        acceptors.emplace_back(*context);
        acceptors.back().assign(
            StreamProtocol(AF_UNIX, 0), last ? *listener : ::fcntl(*listener, F_DUPFD_CLOEXEC, 0)
        );
    }
    return acceptors;
}

tl::unexpected<Error> cannot_listen(const Endpoint& endpoint, const error_code& error) {
    const bool taken = error == asio::error::address_in_use;
    return fail(
        taken ? Code::conflict : Code::invalid_argument,
        "cannot listen on " + endpoint.to_string() + ": " +
            (taken ? "another program uses this port; stop it or choose another port"
                   : error.message())
    );
}

}  // namespace

Shard::Shard(asio::io_context& context, ServerState& server_state, Acceptor shard_acceptor)
    : executor(context.get_executor()),
      state(server_state),
      acceptor(std::move(shard_acceptor)),
      connections(executor),
      service(executor) {}

void Shard::start() {
    service.spawn("accept", accept_loop());
    service.spawn("deadline sweep", sweep_loop());
}

Task<> Shard::accept_loop() {
    while (acceptor.is_open()) {
        Socket socket(executor);
        SocketName peer;
        error_code error;
        co_await acceptor.async_accept(socket, peer, asio::redirect_error(kAwait, error));
        if (!acceptor.is_open()) {
            co_return;
        }
        if (!error) {
            admit(std::move(socket), peer);
            continue;
        }
        if (error == asio::error::connection_aborted) {
            continue;
        }
        // Out of descriptors or memory: both come back when connections end.
        log::warning("accept failed", {{"error", error.message()}});
        const bool go_on = co_await sleep_for(kAcceptPause);
        if (!go_on) {
            co_return;
        }
    }
}

void Shard::admit(Socket socket, const SocketName& peer) {
    error_code error;
    socket.non_blocking(true, error);
    if (state.connections_open.load(std::memory_order_relaxed) >= state.limits.connections_max) {
        refuse(std::move(socket), "the server has too many connections");
        return;
    }
    asio::ip::address address =
        is_local(peer) ? asio::ip::address_v4::loopback() : to_tcp(peer).address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    }
    // Whom a proxy asks for is counted by what it says, not by its connections.
    const bool is_proxy = state.proxies.trusts(address);
    if (state.demands_proxy_line && !is_proxy) {
        state.connections_refused.fetch_add(1, std::memory_order_relaxed);
        return;  // whoever is none could say it speaks for anybody
    }
    std::string share = is_proxy ? std::string() : state.strangers.take(address);
    if (share.empty() && !is_proxy) {
        refuse(
            std::move(socket),
            "your address has too many connections on which no request with a good key was made"
        );
        return;
    }
    state.connections_open.fetch_add(1, std::memory_order_relaxed);
    state.connections_total.fetch_add(1, std::memory_order_relaxed);
    socket.set_option(tcp::no_delay(true), error);
    Transport transport(std::move(socket), state.identity ? state.identity->context() : nullptr);
    auto connection = std::make_shared<Connection>(
        *this, std::move(transport), address.to_string(), std::move(share), is_proxy
    );
    connections.spawn("connection", Connection::run(std::move(connection)));
}

void Shard::take(Descriptor connection) {
    Socket socket(executor);
    error_code error;
    socket.assign(StreamProtocol(AF_UNIX, 0), connection.number(), error);
    if (error) {
        return;
    }
    connection.release();
    if (!state.draining) {
        admit(std::move(socket), SocketName(asio::local::stream_protocol::endpoint()));
    }
}

void Shard::refuse(Socket socket, std::string_view message) {
    state.connections_refused.fetch_add(1, std::memory_order_relaxed);
    error_code error;
    std::string text;
    const auto problem = make_problem(503, "too_many_connections", message);
    append_head(text, problem, {.keep_alive = false, .content_length = problem.body.size()});
    std::array<char, 4096> request;  // closing with unread input would reset the connection
    socket.read_some(asio::buffer(request), error);
    socket.write_some(asio::buffer(text + problem.body), error);
    socket.shutdown(Socket::shutdown_send, error);
}

Task<> Shard::sweep_loop() {
    bool go_on = true;
    while (go_on) {
        const auto now = Ticks::now();
        for (Connection* connection : open) {
            connection->end_if_overdue(now);
        }
        go_on = co_await sleep_for(kSweepInterval);
    }
}

void Shard::begin_drain() {
    error_code ignored;
    acceptor.close(ignored);
    for (Connection* connection : open) {
        connection->begin_drain();
    }
}

void Shard::abort_all() {
    connections.cancel();
    for (Connection* connection : open) {
        connection->abort();
    }
}

Task<> Shard::drained() {
    co_await connections.join();
    service.cancel();
    co_await service.join();
}

class Server::Impl {
public:
    Impl(
        std::vector<asio::io_context*> server_contexts,
        ServerLimits limits,
        Handler handler,
        TrustedProxies proxies
    )
        : contexts(std::move(server_contexts)),
          state(limits, std::move(handler), std::move(proxies)) {
        COMFYD_ASSERT(!contexts.empty());
    }

    std::vector<asio::io_context*> contexts;
    ServerState state;
    std::vector<std::shared_ptr<Shard>> shards;  // with what is posted to them
    std::string local_path;                      // of the unix socket that we listen on

    void serve(std::vector<Acceptor> acceptors) {
        for (std::size_t i = 0; i < acceptors.size(); ++i) {
            auto& context = *contexts[i];
            shards.push_back(std::make_shared<Shard>(context, state, std::move(acceptors[i])));
            asio::post(context, [shard = shards.back()] { shard->start(); });
        }
    }
};

Server::Server(
    std::vector<asio::io_context*> contexts,
    ServerLimits limits,
    Handler handler,
    TrustedProxies proxies
)
    : impl_(std::make_unique<Impl>(
          std::move(contexts), limits, std::move(handler), std::move(proxies)
      )) {}

Server::~Server() {
    COMFYD_ASSERT(impl_->shards.empty());
}

void Server::demand_proxy_line() {
    COMFYD_ASSERT(impl_->shards.empty());
    impl_->state.demands_proxy_line = true;
}

Result<Endpoint> Server::listen(
    const Endpoint& endpoint, std::shared_ptr<const TlsIdentity> identity
) {
    COMFYD_ASSERT(impl_->shards.empty());
    // sendfile(2) has no MSG_NOSIGNAL.
    std::signal(SIGPIPE, SIG_IGN);
    if (!endpoint.socket.empty()) {
        auto opened = open_local_acceptors(impl_->contexts, endpoint.socket);
        if (!opened) {
            return fail(std::move(opened.error()));
        }
        impl_->serve(std::move(*opened));
        impl_->local_path = endpoint.socket;
        return endpoint;
    }
    auto endpoints = candidates(endpoint);
    if (!endpoints) {
        return fail(std::move(endpoints.error()));
    }
    error_code error;
    std::vector<Acceptor> acceptors;
    impl_->state.identity = std::move(identity);
    for (auto& candidate : *endpoints) {
        error = open_acceptors(impl_->contexts, candidate, acceptors);
        if (error) {
            continue;
        }
        impl_->serve(std::move(acceptors));
        return Endpoint{endpoint.host, candidate.port(), {}, impl_->state.identity != nullptr};
    }
    return cannot_listen(endpoint, error);
}

void Server::take(Descriptor connection) {
    if (impl_->shards.empty()) {
        return;
    }
    // A function that is posted must be copyable, and what is not run must still be closed.
    auto held = std::make_shared<Descriptor>(std::move(connection));
    asio::post(impl_->shards.front()->executor, [shard = impl_->shards.front(), held] {
        shard->take(std::move(*held));
    });
}

void Server::stop(Millis grace) {
    impl_->state.draining = true;
    if (!impl_->local_path.empty()) {
        ::unlink(std::exchange(impl_->local_path, {}).c_str());
    }
    std::vector<std::future<void>> ends;
    for (const auto& shard : impl_->shards) {
        auto end = std::make_shared<std::promise<void>>();
        ends.push_back(end->get_future());
        asio::post(shard->executor, [shard] { shard->begin_drain(); });
        asio::co_spawn(shard->executor, shard->drained(), [end](const std::exception_ptr&) {
            end->set_value();
        });
    }
    const Deadline deadline = Deadline::in(grace);
    bool all_ended = true;
    for (const auto& end : ends) {
        all_ended = end.wait_until(deadline.at()) == std::future_status::ready && all_ended;
    }
    if (!all_ended) {
        for (const auto& shard : impl_->shards) {
            asio::post(shard->executor, [shard] { shard->abort_all(); });
        }
    }
    for (const auto& end : ends) {
        end.wait();
    }
    impl_->shards.clear();
}

ServerCounters Server::counters() const {
    const auto& state = impl_->state;
    return {
        state.connections_open.load(),
        state.connections_total.load(),
        state.connections_refused.load(),
        state.bodies_bytes.load()
    };
}

}  // namespace comfyd::net
