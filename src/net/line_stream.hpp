// A connection to a server with which one talks in lines, such as SMTP's: plain, TLS from the
// start, or TLS begun in between. Belongs to one executor; one operation at a time.
//
// What fails says why by its code: Code::address_refused, Code::connection_failed,
// Code::request_timeout, Code::protocol_error, Code::cancelled. After a failure the connection is
// of no further use.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/deadline.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::net {

class Connector;

class LineStream {
public:
    class Impl;
    explicit LineStream(std::unique_ptr<Impl> impl);
    ~LineStream();  // closes the connection

    // The next line without its end, CR LF or LF. One that is too long is Code::protocol_error.
    Task<Result<std::string>> read_line(Deadline deadline);
    Task<Result<>> write(std::string bytes, Deadline deadline);
    // From here on everything is encrypted. What the server has said before and nobody read is
    // dropped: it may be anybody's, and must not count as said under TLS.
    Task<Result<>> start_tls(Deadline deadline);

private:
    std::unique_ptr<Impl> impl_;
};

struct LineClientOptions {
    AddressPolicy policy = AddressPolicy::any;
    std::chrono::seconds connect_timeout{10};
    std::string ca_file{};  // PEM, in addition to the system's
    std::size_t line_bytes_max = 4096;
};

// Opens them. It may end before they do.
class LineClient {
public:
    LineClient(Executor executor, LineClientOptions options);

    // With `is_tls` the handshake is done; the certificate must be the host's.
    Task<Result<std::unique_ptr<LineStream>>> connect(
        std::string host, std::uint16_t port, bool is_tls, Deadline deadline
    );

private:
    Executor executor_;
    std::size_t line_bytes_max_;
    std::shared_ptr<Connector> connector_;  // shared with the connections: it has the certificates
};

}  // namespace comfyd::net
