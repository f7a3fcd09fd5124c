// Connections for protocols other than HTTP: bytes over TCP or TLS, with certificates checked and
// time limits. A Dialer and what it opens belong to one executor: call them only there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/deadline.hpp"
#include "base/task.hpp"

namespace comfyd::net {

class ByteStream {
public:
    virtual ~ByteStream() = default;  // closes

    // One reader and one writer at a time; both may wait at once. Whichever does not end by its
    // deadline closes the connection: Code::request_timeout. Code::connection_failed when the peer
    // closed or is gone; Code::cancelled when the calling task was cancelled or close() was called.
    //
    // At least one byte.
    virtual Task<Result<std::size_t>> read_some(std::span<char> into, Deadline deadline) = 0;
    // All of it.
    virtual Task<Result<>> write(std::string data, Deadline deadline) = 0;
    virtual void close() = 0;
};

struct DialOptions {
    bool tls = false;
    std::string ca_file{};  // PEM, in addition to the system's
};

class Dialer {
public:
    Dialer(Executor executor, DialOptions options);
    ~Dialer();
    Dialer(const Dialer&) = delete;
    Dialer& operator=(const Dialer&) = delete;

    // `host`: a name or an address. Code::connection_failed, Code::request_timeout,
    // Code::cancelled, Code::config_invalid.
    Task<Result<std::unique_ptr<ByteStream>>> open(
        std::string host, std::uint16_t port, Deadline deadline
    );

private:
    class Impl;
    std::shared_ptr<Impl> impl_;  // shared with those that are being opened
};

}  // namespace comfyd::net
