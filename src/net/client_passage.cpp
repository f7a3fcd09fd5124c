#include "net/client_passage.hpp"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <boost/asio/write.hpp>

#include "net/response_parser.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

class ClientPassage final : public OpenedPassage {
public:
    ClientPassage(std::shared_ptr<ClientConnection> connection, Url url, PassageOptions options)
        : connection_(std::move(connection)), url_(std::move(url)), options_(options) {}
    ~ClientPassage() override { connection_->stream.close(); }

    Task<Result<>> begin(std::string head) override { return send(std::move(head)); }

    Task<Result<>> write(std::string piece) override {
        if (options_.is_chunked && !piece.empty()) {
            std::array<char, 16> size{};
            const auto* end =
                std::to_chars(size.data(), size.data() + size.size(), piece.size(), 16).ptr;
            piece.insert(0, std::string(static_cast<const char*>(size.data()), end) + "\r\n");
            piece += "\r\n";
        }
        return send(std::move(piece));
    }

    Task<Result<>> end_body() override {
        return send(options_.is_chunked ? std::string("0\r\n\r\n") : std::string());
    }

    Task<Result<AnswerHead>> head() override {
        do {
            response_ = ClientResponse();
            parser_.emplace(response_, std::numeric_limits<std::uint64_t>::max(), sink_);
            parser_->skip(options_.is_bodiless);
            while (!parser_->is_header_done()) {
                auto more = co_await advance();
                if (!more) {
                    co_return fail(std::move(more.error()));
                }
            }
        } while (response_.status / 100 == 1 && response_.status != 101);
        if (response_.status == 101) {
            co_return fail(malformed());
        }
        co_return AnswerHead{response_.status, std::move(response_.headers)};
    }

    Task<Result<std::string>> read() override {
        while (response_.body.empty() && !parser_->is_done()) {
            auto more = co_await advance();
            if (!more) {
                co_return fail(std::move(more.error()));
            }
        }
        co_return std::exchange(response_.body, std::string());
    }

private:
    Task<Result<>> send(std::string bytes) {
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(to_client_error(url_, asio::error::operation_aborted, false));
        }
        TimeGuard guard(connection_->stream.get_executor());
        guard.watch(connection_, Deadline::in(options_.wait));
        error_code error;
        co_await asio::async_write(
            connection_->stream, asio::buffer(bytes), asio::redirect_error(kAwait, error)
        );
        if (error || guard.fired()) {
            co_return fail(to_client_error(url_, error, guard.fired()));
        }
        co_return Result<>();
    }

    // Parses what is there, or waits for more of it.
    Task<Result<>> advance() {
        error_code error = http::error::need_more;
        if (!buffer_.empty()) {
            const auto unread = buffer_.view();
            const std::size_t used =
                parser_->put(asio::const_buffer(unread.data(), unread.size()), error);
            buffer_.consume(used);
            if (error && error != http::error::need_more) {
                co_return fail(malformed());
            }
            if (used > 0 && !error) {
                co_return Result<>();
            }
        }
        if (!parser_->is_header_done() && buffer_.size() > ResponseParser::kHeaderBytesMax) {
            co_return fail(malformed());
        }
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(to_client_error(url_, asio::error::operation_aborted, false));
        }
        TimeGuard guard(connection_->stream.get_executor());
        guard.watch(connection_, Deadline::in(options_.wait));
        const std::size_t count = co_await connection_->stream.async_read_some(
            buffer_.prepare(kReadBytes), asio::redirect_error(kAwait, error)
        );
        if (error == asio::error::eof && parser_->got_some()) {
            parser_->put_eof(error);
            co_return error ? Result<>(fail(to_client_error(url_, asio::error::eof, false)))
                            : Result<>();
        }
        if (error || guard.fired()) {
            co_return fail(to_client_error(url_, error, guard.fired()));
        }
        buffer_.commit(count);
        co_return Result<>();
    }

    Error malformed() const {
        return Error(
            Code::protocol_error, origin_name(url_) + ": the answer is not valid HTTP/1.1"
        );
    }

    std::shared_ptr<ClientConnection> connection_;  // the time guards look at it
    Url url_;
    PassageOptions options_;
    ReadBuffer buffer_;
    ClientResponse response_;
    Client::Sink sink_;  // none: what has come is taken from the response, piece by piece
    std::optional<ResponseParser> parser_;
};

}  // namespace

std::unique_ptr<OpenedPassage> make_passage(
    std::shared_ptr<ClientConnection> connection, Url url, PassageOptions options
) {
    return std::make_unique<ClientPassage>(std::move(connection), std::move(url), options);
}

}  // namespace comfyd::net
