// Internal to net: connecting the client's streams, with address policy, TLS and time limits.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "net/client.hpp"
#include "net/stream.hpp"

namespace comfyd::net {

struct ClientConnection {
    explicit ClientConnection(Executor executor) : stream(Socket(executor)) {}
    Stream stream;
    bool reused = false;
};

// Closes the connection that an operation works on when its time is over: the operation then ends
// with an error, whatever it waits for. Ends with its scope.
class TimeGuard {
public:
    explicit TimeGuard(Executor executor);
    ~TimeGuard();
    TimeGuard(const TimeGuard&) = delete;
    TimeGuard& operator=(const TimeGuard&) = delete;

    void watch(const std::shared_ptr<ClientConnection>& connection, Deadline until);
    void stop();
    bool fired() const;

private:
    struct State;
    std::shared_ptr<State> state_;  // with the timer's handler, which may be queued when we end
};

class Connector {
public:
    Connector(Executor executor, const ClientOptions& options);

    Result<> identify(const std::vector<ClientIdentity>& identities);

    // A new connection to the URL's host, TLS included. `deadline` is the whole operation's.
    Task<Result<std::shared_ptr<ClientConnection>>> open(
        Url url, bool verify_tls, Deadline deadline
    );
    // TLS on a connection that is plain so far.
    Task<Result<>> shake_hands(
        std::shared_ptr<ClientConnection> connection, Url url, bool verify_tls, Deadline deadline
    );

private:
    Task<Result<std::shared_ptr<ClientConnection>>> open_line(
        std::string name, Url url, bool verify_tls, Deadline deadline
    );
    Task<Result<std::vector<SocketName>>> resolve(Url url, Deadline deadline);
    bool may_connect(const SocketName& name) const;
    Result<asio::ssl::context*> tls_context(bool verify);
    Result<std::unique_ptr<asio::ssl::context>> make_context(
        bool verify, const std::string& only_ca_file
    ) const;

    Executor executor_;
    ClientOptions options_;
    // Made when first needed: loading the system's certificates takes milliseconds.
    std::unique_ptr<asio::ssl::context> tls_verifying_;
    std::unique_ptr<asio::ssl::context> tls_trusting_;
    struct Identity {
        std::unique_ptr<asio::ssl::context> context;
        std::string server_name;
    };
    std::map<std::string, Identity> identities_;  // by origin_name()
};

std::string origin_name(const Url& url);  // host:port, unix:path or worker://name, for messages
std::string reason_of(const error_code& error);
// What an operation that failed with `error` says, given why it may have been ended by ourselves.
Error to_client_error(const Url& url, const error_code& error, bool timed_out);

}  // namespace comfyd::net
