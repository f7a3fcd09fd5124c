#include "net/line_stream.hpp"

#include <utility>

#include <boost/asio/write.hpp>

#include "net/client_connection.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 4096;

ClientOptions client_options(const LineClientOptions& options) {
    ClientOptions client;
    client.policy = options.policy;
    client.connect_timeout = options.connect_timeout;
    client.ca_file = options.ca_file;
    return client;
}

}  // namespace

class LineStream::Impl {
public:
    Impl(
        Executor executor,
        std::shared_ptr<Connector> connector,
        std::size_t line_bytes_max,
        Url url,
        std::shared_ptr<ClientConnection> connection
    )
        : executor_(executor),
          connector_(std::move(connector)),
          line_bytes_max_(line_bytes_max),
          url_(std::move(url)),
          connection_(std::move(connection)) {}
    ~Impl() { connection_->stream.close(); }

    Task<Result<std::string>> read_line(Deadline deadline);
    Task<Result<>> write(std::string bytes, Deadline deadline);
    Task<Result<>> start_tls(Deadline deadline);

private:
    Executor executor_;
    std::shared_ptr<Connector> connector_;
    const std::size_t line_bytes_max_;
    const Url url_;
    std::shared_ptr<ClientConnection> connection_;
    ReadBuffer unread_;
};

Task<Result<std::string>> LineStream::Impl::read_line(Deadline deadline) {
    TimeGuard guard(executor_);
    guard.watch(connection_, deadline);
    std::size_t searched = 0;
    for (;;) {
        const std::string_view said = unread_.view();
        const std::size_t end = said.find('\n', searched);
        if (end != std::string_view::npos && end <= line_bytes_max_) {
            std::string line(said.substr(0, end));
            unread_.consume(end + 1);
            if (line.ends_with('\r')) {
                line.pop_back();
            }
            co_return line;
        }
        if (said.size() > line_bytes_max_) {
            co_return fail(
                Code::protocol_error, origin_name(url_) + ": the server sends a line without end"
            );
        }
        searched = said.size();
        error_code error;
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(to_client_error(url_, asio::error::operation_aborted, false));
        }
        const std::size_t count = co_await connection_->stream.async_read_some(
            unread_.prepare(kReadBytes), asio::redirect_error(kAwait, error)
        );
        if (error || guard.fired()) {
            co_return fail(to_client_error(url_, error, guard.fired()));
        }
        unread_.commit(count);
    }
}

Task<Result<>> LineStream::Impl::write(std::string bytes, Deadline deadline) {
    const bool stop = co_await is_cancelled();
    if (stop) {
        co_return fail(to_client_error(url_, asio::error::operation_aborted, false));
    }
    TimeGuard guard(executor_);
    guard.watch(connection_, deadline);
    error_code error;
    co_await asio::async_write(
        connection_->stream, asio::buffer(bytes), asio::redirect_error(kAwait, error)
    );
    if (error || guard.fired()) {
        co_return fail(to_client_error(url_, error, guard.fired()));
    }
    co_return Result<>();
}

Task<Result<>> LineStream::Impl::start_tls(Deadline deadline) {
    unread_.consume(unread_.size());
    auto shaken = co_await connector_->shake_hands(connection_, url_, true, deadline);
    co_return shaken;
}

LineStream::LineStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineStream::~LineStream() = default;

Task<Result<std::string>> LineStream::read_line(Deadline deadline) {
    return impl_->read_line(deadline);
}
Task<Result<>> LineStream::write(std::string bytes, Deadline deadline) {
    return impl_->write(std::move(bytes), deadline);
}
Task<Result<>> LineStream::start_tls(Deadline deadline) {
    return impl_->start_tls(deadline);
}

LineClient::LineClient(Executor executor, LineClientOptions options)
    : executor_(executor),
      line_bytes_max_(options.line_bytes_max),
      connector_(std::make_shared<Connector>(executor, client_options(options))) {}

Task<Result<std::unique_ptr<LineStream>>> LineClient::connect(
    std::string host, std::uint16_t port, bool is_tls, Deadline deadline
) {
    const auto connector = connector_;
    const Url url{.scheme = is_tls ? "https" : "http", .host = std::move(host), .port = port};
    auto opened = co_await connector->open(url, true, deadline);
    if (!opened) {
        co_return fail(std::move(opened.error()));
    }
    co_return std::make_unique<LineStream>(std::make_unique<LineStream::Impl>(
        executor_, connector, line_bytes_max_, url, std::move(*opened)
    ));
}

}  // namespace comfyd::net
