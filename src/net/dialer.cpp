#include "net/dialer.hpp"

#include <utility>

#include <boost/asio/write.hpp>

#include "net/client_connection.hpp"

namespace comfyd::net {
namespace {

class DialedConnection final : public ByteStream {
public:
    DialedConnection(std::shared_ptr<ClientConnection> connection, Url url)
        : connection_(std::move(connection)), url_(std::move(url)) {}
    ~DialedConnection() override { close(); }

    Task<Result<std::size_t>> read_some(std::span<char> into, Deadline deadline) override {
        return read_from(connection_, url_, into, deadline);
    }
    Task<Result<>> write(std::string data, Deadline deadline) override {
        return write_to(connection_, url_, std::move(data), deadline);
    }
    void close() override { connection_->stream.close(); }

private:
    // Both hold the connection: its owner may let go of it while they wait.
    static Task<Result<std::size_t>> read_from(
        std::shared_ptr<ClientConnection> connection,
        Url url,
        std::span<char> into,
        Deadline deadline
    ) {
        TimeGuard guard(connection->stream.get_executor());
        guard.watch(connection, deadline);
        error_code error;
        const std::size_t count = co_await connection->stream.async_read_some(
            asio::buffer(into.data(), into.size()), asio::redirect_error(kAwait, error)
        );
        if (error) {
            co_return fail(to_error(*connection, url, error, guard));
        }
        co_return count;
    }

    static Task<Result<>> write_to(
        std::shared_ptr<ClientConnection> connection, Url url, std::string data, Deadline deadline
    ) {
        TimeGuard guard(connection->stream.get_executor());
        guard.watch(connection, deadline);
        error_code error;
        co_await asio::async_write(
            connection->stream, asio::buffer(data), asio::redirect_error(kAwait, error)
        );
        if (error) {
            co_return fail(to_error(*connection, url, error, guard));
        }
        co_return Result<>();
    }

    static Error to_error(
        ClientConnection& connection, const Url& url, error_code error, const TimeGuard& guard
    ) {
        if (!connection.stream.socket().is_open()) {
            error = asio::error::operation_aborted;
        }
        return to_client_error(url, error, guard.fired());
    }

    std::shared_ptr<ClientConnection> connection_;
    Url url_;
};

ClientOptions options_of(const DialOptions& options) {
    ClientOptions made;
    made.ca_file = options.ca_file;
    return made;
}

}  // namespace

class Dialer::Impl {
public:
    Impl(Executor executor, const DialOptions& options)
        : scheme_(options.tls ? "https" : "http"), connector_(executor, options_of(options)) {}

    static Task<Result<std::unique_ptr<ByteStream>>> open(
        std::shared_ptr<Impl> self, std::string host, std::uint16_t port, Deadline deadline
    ) {
        Url url;
        url.scheme = self->scheme_;
        url.host = std::move(host);
        url.port = port;
        auto opened = co_await self->connector_.open(url, true, deadline);
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
        co_return std::make_unique<DialedConnection>(std::move(*opened), std::move(url));
    }

private:
    std::string scheme_;
    Connector connector_;
};

Dialer::Dialer(Executor executor, DialOptions options)
    : impl_(std::make_shared<Impl>(executor, options)) {}
Dialer::~Dialer() = default;

Task<Result<std::unique_ptr<ByteStream>>> Dialer::open(
    std::string host, std::uint16_t port, Deadline deadline
) {
    return Impl::open(impl_, std::move(host), port, deadline);
}

}  // namespace comfyd::net
