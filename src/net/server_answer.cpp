// How a Connection writes answers. A write is tried at once, without a detour through the event
// loop; only what the socket does not take is waited for.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <span>

#include "net/gzip.hpp"
#include "net/server_connection.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kCompressBytesMin = 1024;
constexpr std::size_t kCompressBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kOneBufferBytesMax =
    16 * 1024;  // up to here a copy is cheaper than a second piece
constexpr std::uint64_t kUnreadBytesMax = 256 * 1024;  // a longer unread body costs the connection
constexpr std::size_t kFilePieceBytes = 256 * 1024;
constexpr std::size_t kCopiedPieceBytes = 64 * 1024;

asio::const_buffer piece(std::string_view text) {
    return {text.data(), text.size()};
}

// Of a stream that says how long it will be.
std::optional<std::uint64_t> length_of(const Response& head) {
    const std::string_view text = head.headers.get("Content-Length");
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    return !text.empty() && error == std::errc() && end == text.data() + text.size()
               ? std::optional(length)
               : std::nullopt;
}

class File {
public:
    explicit File(const std::string& path)
        : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~File() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int descriptor() const { return descriptor_; }
    // nullopt when it could not be opened or is no regular file.
    std::optional<std::uint64_t> size() const {
        struct stat status{};
        if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
            return std::nullopt;
        }
        return static_cast<std::uint64_t>(status.st_size);
    }

private:
    int descriptor_;
};

}  // namespace

void Outgoing::advance(std::size_t count) {
    while (first < pieces.size() && count >= pieces[first].size()) {
        count -= pieces[first].size();
        ++first;
    }
    if (first < pieces.size()) {
        pieces[first] += count;
    }
}

tl::unexpected<Error> Connection::gone() {
    keep_alive_ = false;
    peer_closed_ = true;
    return fail(Code::connection_failed, "the client is gone");
}

tl::unexpected<Error> Connection::answered_twice() {
    return fail(Code::internal, "the request has been answered before");
}

bool Connection::write_now(Outgoing& out, int flags) {
    error_code error;
    out.advance(0);
    while (!out.done()) {
        const auto rest = std::span(out.pieces).subspan(out.first);
        const std::size_t count = transport_.write_now(rest, flags, error);
        if (error) {
            return error == asio::error::would_block;
        }
        out.advance(count);
    }
    return true;
}

Task<Result<>> Connection::flush(Outgoing out) {
    if (!write_now(out, 0)) {
        co_return gone();
    }
    while (!out.done()) {
        const bool stop = co_await is_cancelled();
        if (stop || aborted_) {
            keep_alive_ = false;
            co_return fail(Code::cancelled, "the server shuts down");
        }
        wait_until(shard_.state.limits.write_timeout);
        const error_code error = co_await transport_.writable();
        wait_for_ever();
        if (error == asio::error::operation_aborted && !expired_) {
            keep_alive_ = false;
            co_return fail(Code::cancelled, "the server shuts down");
        }
        if (error || !write_now(out, 0)) {
            co_return gone();
        }
    }
    co_return Result<>();
}

Framing Connection::frame_answer(int status, std::optional<std::uint64_t> content_length) {
    answered_ = true;
    const bool unread_is_long =
        body_ != Body::none &&
        (continue_expected_ || (body_ == Body::sized && body_left_ > kUnreadBytesMax));
    keep_alive_ = keep_alive_ && !unread_is_long && !draining();
    Framing framing;
    framing.http11 = http11_;
    framing.keep_alive = keep_alive_;
    if (!is_bodiless(status)) {
        framing.content_length = content_length;
    }
    return framing;
}

void Connection::compress(Response& response) const {
    const bool worth_it =
        response.body.size() > kCompressBytesMin && response.body.size() <= kCompressBytesMax;
    if (!worth_it || !is_compressible(response.headers.get("Content-Type")) ||
        response.headers.contains("Content-Encoding") ||
        response.headers.contains("Accept-Ranges")) {  // its parts have fixed places
        return;
    }
    const auto vary = response.headers.get("Vary");
    response.headers.set(
        "Vary", vary.empty() ? "Accept-Encoding" : std::string(vary) + ", Accept-Encoding"
    );
    if (accepts_gzip(request_.headers.get("Accept-Encoding"))) {
        response.body = gzip(response.body);
        response.headers.set("Content-Encoding", "gzip");
    }
}

Task<Result<>> Connection::send(Response response) {
    if (answered_) {
        co_return answered_twice();
    }
    compress(response);
    std::string text;
    const bool bodiless = request_.method == Method::head || is_bodiless(response.status);
    const bool together = !bodiless && response.body.size() <= kOneBufferBytesMax;
    text.reserve(384 + (together ? response.body.size() : 0));
    append_head(text, response, frame_answer(response.status, response.body.size()));
    if (together) {
        text += response.body;
    }
    Outgoing out;
    out.pieces[0] = piece(text);
    if (!together && !bodiless) {
        out.pieces[1] = piece(response.body);
    }
    if (!write_now(out, 0)) {
        co_return gone();
    }
    if (out.done()) {
        co_return Result<>();
    }
    auto flushed = co_await flush(out);
    co_return flushed;
}

Task<Result<>> Connection::send_file(Response head, FileBody file) {
    if (answered_) {
        co_return answered_twice();
    }
    const File opened(file.path);
    const auto size = opened.size();
    if (!size) {
        co_return fail(Code::not_found, "the file cannot be read");
    }
    if (file.offset > *size || file.length > *size - file.offset) {
        co_return fail(Code::range_not_satisfiable, "the file is shorter than what was asked for");
    }
    std::string text;
    append_head(text, head, frame_answer(head.status, file.length));
    const bool bodiless =
        request_.method == Method::head || is_bodiless(head.status) || file.length == 0;
    Outgoing out;
    out.pieces[0] = piece(text);
    if (!write_now(out, bodiless ? 0 : MSG_MORE)) {
        co_return gone();
    }
    auto flushed = co_await flush(out);
    if (!flushed || bodiless) {
        co_return flushed;
    }
    auto part = transport_.is_tls() ? copy_file_part(opened.descriptor(), file.offset, file.length)
                                    : send_file_part(opened.descriptor(), file.offset, file.length);
    auto sent = co_await std::move(part);
    if (!sent) {
        keep_alive_ = false;
    }
    co_return sent;
}

Task<Result<>> Connection::send_file_part(int file, std::uint64_t offset, std::uint64_t length) {
    auto position = static_cast<off_t>(offset);
    while (length > 0) {
        const bool stop = co_await is_cancelled();
        if (stop || aborted_) {
            co_return fail(Code::cancelled, "the server shuts down");
        }
        const auto count = ::sendfile(
            transport_.socket().native_handle(),
            file,
            &position,
            static_cast<std::size_t>(std::min<std::uint64_t>(length, kFilePieceBytes))
        );
        if (count > 0) {
            length -= static_cast<std::uint64_t>(count);
            continue;
        }
        if (count == 0) {
            // The client waits for bytes that no longer exist: only closing tells it.
            peer_closed_ = true;
            co_return fail(Code::internal, "the file became shorter while it was sent");
        }
        if (errno == EINTR) {
            continue;
        }
        if (errno != EAGAIN) {
            co_return gone();
        }
        wait_until(shard_.state.limits.write_timeout);
        const error_code error = co_await transport_.writable();
        wait_for_ever();
        if (error) {
            co_return gone();
        }
    }
    co_return Result<>();
}

// Under TLS the bytes must pass through here.
Task<Result<>> Connection::copy_file_part(int file, std::uint64_t offset, std::uint64_t length) {
    std::string piece_of_it(
        static_cast<std::size_t>(std::min<std::uint64_t>(length, kCopiedPieceBytes)), '\0'
    );
    while (length > 0) {
        const auto wanted = std::min<std::uint64_t>(length, piece_of_it.size());
        const auto count = ::pread(
            file, piece_of_it.data(), static_cast<std::size_t>(wanted), static_cast<off_t>(offset)
        );
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            peer_closed_ = true;
            co_return fail(Code::internal, "the file became shorter while it was sent");
        }
        offset += static_cast<std::uint64_t>(count);
        length -= static_cast<std::uint64_t>(count);
        Outgoing out;
        out.pieces[0] = {piece_of_it.data(), static_cast<std::size_t>(count)};
        auto flushed = co_await flush(out);
        if (!flushed) {
            co_return flushed;
        }
    }
    co_return Result<>();
}

Task<Result<>> Connection::begin_stream(Response head) {
    if (answered_) {
        co_return answered_twice();
    }
    stream_left_ = length_of(head);
    Framing framing = frame_answer(head.status, stream_left_);
    const bool bodiless = request_.method == Method::head || is_bodiless(head.status);
    if (!http11_ && !stream_left_ &&
        !bodiless) {  // HTTP/1.0 has no chunks: the end of the connection ends the answer
        keep_alive_ = framing.keep_alive = false;
    }
    framing.chunked = http11_ && !stream_left_ && !is_bodiless(head.status);
    stream_chunked_ = framing.chunked;
    stream_open_ = !bodiless;
    std::string text;
    append_head(text, head, framing);
    // A stream may be silent for hours: it holds no more memory than it needs.
    if (body_ == Body::none) {
        release_memory();
    }
    Outgoing out;
    out.pieces[0] = piece(text);
    auto flushed = co_await flush(out);
    co_return flushed;
}

Task<Result<>> Connection::write_stream(std::string data) {
    if (peer_closed_ || aborted_) {
        co_return gone();
    }
    if (data.empty() || !stream_open_) {  // an empty chunk would end the stream; HEAD has no body
        co_return Result<>();
    }
    if (stream_left_ && data.size() > *stream_left_) {
        co_return fail(Code::internal, "the answer is longer than it was told to be");
    }
    if (stream_left_) {
        *stream_left_ -= data.size();
    }
    std::array<char, 20> size{};
    Outgoing out;
    if (stream_chunked_) {
        auto* end = std::to_chars(size.data(), size.data() + 16, data.size(), 16).ptr;
        *end++ = '\r';
        *end++ = '\n';
        out.pieces[0] = {size.data(), static_cast<std::size_t>(end - size.data())};
        data += "\r\n";
    }
    out.pieces[1] = piece(data);
    if (!write_now(out, 0)) {
        co_return gone();
    }
    if (out.done()) {
        co_return Result<>();
    }
    auto flushed = co_await flush(out);
    co_return flushed;
}

Task<Result<>> Connection::end_stream() {
    if (!stream_open_) {
        co_return Result<>();
    }
    if (peer_closed_ || aborted_) {
        co_return gone();
    }
    if (stream_left_.value_or(0) > 0) {
        co_return fail(Code::internal, "the answer is shorter than it was told to be");
    }
    stream_open_ = false;
    if (!stream_chunked_) {
        co_return Result<>();
    }
    auto flushed = co_await flush({{asio::const_buffer("0\r\n\r\n", 5)}});
    co_return flushed;
}

}  // namespace comfyd::net
