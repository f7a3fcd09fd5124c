#include "net/client_connection.hpp"

#include <openssl/ssl.h>

#include <boost/asio/ssl/host_name_verification.hpp>

#include "net/address_guard.hpp"
#include "net/lines.hpp"
#include "net/lookup.hpp"
#include "net/socket_name.hpp"

namespace comfyd::net {

std::string origin_name(const Url& url) {
    if (!url.socket.empty()) {
        return line_name(url.socket) ? url.socket : "unix:" + url.socket;
    }
    const bool v6 = url.host.find(':') != std::string::npos;
    return (v6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

std::string reason_of(const error_code& error) {
    std::string text =
        error == asio::error::eof ? "connection closed by the peer" : error.message();
    if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') {
        text[0] = static_cast<char>(text[0] - 'A' + 'a');
    }
    return text;
}

Error to_client_error(const Url& url, const error_code& error, bool timed_out) {
    if (timed_out) {
        return {Code::request_timeout, origin_name(url) + ": no complete answer in time"};
    }
    if (error == asio::error::operation_aborted) {
        return {Code::cancelled, origin_name(url) + ": the request was cancelled"};
    }
    return {Code::connection_failed, origin_name(url) + ": " + reason_of(error)};
}

struct TimeGuard::State {
    explicit State(Executor executor) : timer(executor) {}
    Timer timer;
    std::weak_ptr<ClientConnection> target;
    std::uint64_t generation = 0;
    bool fired = false;
};

TimeGuard::TimeGuard(Executor executor) : state_(std::make_shared<State>(executor)) {}
TimeGuard::~TimeGuard() {
    stop();
}
bool TimeGuard::fired() const {
    return state_->fired;
}

void TimeGuard::stop() {
    ++state_->generation;
    state_->timer.cancel();
}

void TimeGuard::watch(const std::shared_ptr<ClientConnection>& connection, Deadline until) {
    stop();
    state_->target = connection;
    state_->fired = false;
    state_->timer.expires_at(until.at());
    state_->timer.async_wait([state = state_,
                              generation = state_->generation](const error_code& error) {
        if (error || generation != state->generation) {
            return;
        }
        state->fired = true;
        if (const auto target = state->target.lock()) {
            target->stream.close();
        }
    });
}

Connector::Connector(Executor executor, const ClientOptions& options)
    : executor_(executor), options_(options) {}

bool Connector::may_connect(const SocketName& name) const {
    return options_.policy == AddressPolicy::any ||
           (!is_local(name) && !AddressGuard::of_process().refuses(to_tcp(name).address()));
}

namespace {

// One failure for names that are not known and for those of private addresses: whoever may not ask
// those is not told which there are.
Error no_public_address(const Url& url) {
    return Error(
        Code::connection_failed,
        origin_name(url) + ": the name cannot be resolved to a public address"
    );
}

}  // namespace

Task<Result<std::vector<SocketName>>> Connector::resolve(Url url, Deadline deadline) {
    if (!url.socket.empty()) {
        const auto name = local_name(url.socket);
        if (!name) {
            co_return fail(name.error());
        }
        co_return std::vector{*name};
    }
    error_code error;
    const auto address = asio::ip::make_address(url.host, error);
    if (!error) {
        co_return std::vector{SocketName(tcp::endpoint(address, url.port))};
    }
    if (options_.policy == AddressPolicy::public_only &&
        AddressGuard::of_process().refuses_name(url.host)) {
        co_return fail(no_public_address(url));
    }
    const LookedUp found = co_await look_up(executor_, url.host, url.port, deadline);
    if (!found.is_done) {
        const bool stop = co_await is_cancelled();
        co_return fail(to_client_error(url, asio::error::operation_aborted, !stop));
    }
    const bool is_found = !found.error && !found.endpoints.empty();
    if (!is_found && options_.policy == AddressPolicy::public_only) {
        co_return fail(no_public_address(url));
    }
    if (!is_found) {
        const auto why = found.error ? reason_of(found.error) : std::string("no address");
        co_return fail(
            Code::connection_failed,
            origin_name(url) + ": the name cannot be resolved (" + why + ")"
        );
    }
    co_return std::vector<SocketName>(found.endpoints.begin(), found.endpoints.end());
}

Task<Result<std::shared_ptr<ClientConnection>>> Connector::open(
    Url url, bool verify_tls, Deadline deadline
) {
    if (options_.policy == AddressPolicy::public_only && is_guarded_port(url.port)) {
        co_return fail(
            Code::address_refused,
            origin_name(url) + ": connections to this port are not allowed; use 443"
        );
    }
    if (auto name = line_name(url.socket)) {
        auto opened = co_await open_line(std::move(*name), url, verify_tls, deadline);
        co_return opened;
    }
    const auto names = co_await resolve(url, deadline);
    if (!names) {
        co_return fail(names.error());
    }
    error_code no_address;
    asio::ip::make_address(url.host, no_address);
    Error last = no_address
                     ? no_public_address(url)
                     : Error(
                           Code::address_refused,
                           origin_name(url) + ": connections to private addresses are not allowed"
                       );
    TimeGuard guard(executor_);
    for (const auto& name : *names) {
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(to_client_error(url, asio::error::operation_aborted, false));
        }
        if (!may_connect(name)) {
            continue;
        }
        auto connection = std::make_shared<ClientConnection>(executor_);
        guard.watch(connection, deadline.or_in(options_.connect_timeout));
        error_code error;
        co_await connection->stream.socket().async_connect(
            name, asio::redirect_error(kAwait, error)
        );
        if (error == boost::system::errc::no_such_file_or_directory) {
            error = asio::error::connection_refused;  // nobody listens where there is no socket
        }
        if (guard.fired() && !deadline.has_passed()) {
            const auto seconds = std::to_string(options_.connect_timeout.count());
            last = Error(
                Code::connection_failed,
                origin_name(url) + ": no connection within " + seconds + " s"
            );
            continue;
        }
        if (error || guard.fired()) {
            last = to_client_error(url, error, guard.fired());
            if (last.code != Code::connection_failed) {
                co_return fail(std::move(last));
            }
            continue;
        }
        guard.stop();
        // A free port in the ephemeral range can be met by our own end: then nobody listens there.
        if (connection->stream.socket().local_endpoint(error) ==
            connection->stream.socket().remote_endpoint(error)) {
            last = to_client_error(url, asio::error::connection_refused, false);
            continue;
        }
        connection->stream.socket().set_option(tcp::no_delay(true), error);
        if (url.is_tls()) {
            auto shaken = co_await shake_hands(connection, url, verify_tls, deadline);
            if (!shaken) {
                co_return fail(std::move(shaken.error()));
            }
        }
        co_return connection;
    }
    co_return fail(std::move(last));
}

// Whoever has called is asked through what it called with: no address, so no policy of addresses.
Task<Result<std::shared_ptr<ClientConnection>>> Connector::open_line(
    std::string name, Url url, bool verify_tls, Deadline deadline
) {
    if (!options_.lines || options_.policy != AddressPolicy::any) {
        co_return fail(
            Code::connection_failed, origin_name(url) + ": no machine can have called here"
        );
    }
    auto end =
        co_await options_.lines->open(std::move(name), deadline.or_in(options_.connect_timeout));
    if (!end) {
        co_return fail(std::move(end.error()));
    }
    auto connection = std::make_shared<ClientConnection>(executor_);
    error_code error;
    connection->stream.socket().assign(StreamProtocol(AF_UNIX, 0), end->number(), error);
    if (error) {
        co_return fail(to_client_error(url, error, false));
    }
    end->release();
    if (url.is_tls()) {
        auto shaken = co_await shake_hands(connection, url, verify_tls, deadline);
        if (!shaken) {
            co_return fail(std::move(shaken.error()));
        }
    }
    co_return connection;
}

Task<Result<>> Connector::shake_hands(
    std::shared_ptr<ClientConnection> connection, Url url, bool verify_tls, Deadline deadline
) {
    const auto identity = identities_.find(origin_name(url));
    const bool is_identified = identity != identities_.end();
    const auto context = is_identified ? Result<asio::ssl::context*>(identity->second.context.get())
                                       : tls_context(verify_tls);
    if (!context) {
        co_return fail(context.error());
    }
    connection->stream.start_tls(**context);
    auto& tls = *connection->stream.tls();
    const bool is_renamed = is_identified && !identity->second.server_name.empty();
    const std::string host = is_renamed ? identity->second.server_name : url.host;
    error_code error;
    asio::ip::make_address(host, error);
    const bool named = static_cast<bool>(error);
    if (named && SSL_set_tlsext_host_name(tls.native_handle(), host.c_str()) != 1) {
        co_return fail(
            Code::invalid_argument, origin_name(url) + ": the host name cannot be used with TLS"
        );
    }
    if (verify_tls || is_identified) {
        tls.set_verify_callback(asio::ssl::host_name_verification(host), error);
    }
    TimeGuard guard(executor_);
    guard.watch(connection, deadline.or_in(options_.connect_timeout));
    co_await tls.async_handshake(
        asio::ssl::stream_base::client, asio::redirect_error(kAwait, error)
    );
    if (guard.fired() && !deadline.has_passed()) {
        co_return fail(
            Code::connection_failed, origin_name(url) + ": the TLS handshake took too long"
        );
    }
    if (error || guard.fired()) {
        Error failure = to_client_error(url, error, guard.fired());
        const long verdict = SSL_get_verify_result(tls.native_handle());
        if (failure.code == Code::connection_failed && verdict != X509_V_OK) {
            failure.message += std::string(" (") + X509_verify_cert_error_string(verdict) + ")";
        }
        co_return fail(std::move(failure));
    }
    co_return Result<>();
}

Result<asio::ssl::context*> Connector::tls_context(bool verify) {
    auto& context = verify ? tls_verifying_ : tls_trusting_;
    if (!context) {
        auto made = make_context(verify, "");
        if (!made) {
            return fail(std::move(made.error()));
        }
        context = std::move(*made);
    }
    return context.get();
}

Result<std::unique_ptr<asio::ssl::context>> Connector::make_context(
    bool verify, const std::string& only_ca_file
) const {
    auto made = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(made->native_handle(), TLS1_2_VERSION);
    const std::string& ca_file = only_ca_file.empty() ? options_.ca_file : only_ca_file;
    error_code error;
    if (verify) {
        made->set_verify_mode(asio::ssl::verify_peer, error);
        if (only_ca_file.empty()) {
            made->set_default_verify_paths(error);
        }
        error.clear();  // a machine without certificates fails each handshake, with a clear reason
        if (!ca_file.empty()) {
            made->load_verify_file(ca_file, error);
        }
    }
    if (error) {
        return fail(
            Code::config_invalid,
            "the certificates in '" + ca_file + "' cannot be loaded: " + reason_of(error)
        );
    }
    return made;
}

Result<> Connector::identify(const std::vector<ClientIdentity>& identities) {
    std::map<std::string, Identity> known;
    for (const ClientIdentity& identity : identities) {
        const auto url = Url::parse(identity.url);
        if (!url) {
            return fail(url.error());
        }
        auto context = make_context(true, identity.ca_file);
        if (!context) {
            return fail(std::move(context.error()));
        }
        error_code error;
        if (!identity.certificate.empty()) {
            (*context)->use_certificate_chain_file(identity.certificate, error);
        }
        if (!error && !identity.certificate.empty()) {
            (*context)->use_private_key_file(identity.key, asio::ssl::context::pem, error);
        }
        if (error) {
            return fail(
                Code::config_invalid,
                "the certificate '" + identity.certificate + "' and its key '" + identity.key +
                    "' cannot be used: " + reason_of(error)
            );
        }
        known[origin_name(*url)] = {std::move(*context), identity.server_name};
    }
    // Connections that are open hold on to what they began with.
    identities_ = std::move(known);
    return {};
}

}  // namespace comfyd::net
