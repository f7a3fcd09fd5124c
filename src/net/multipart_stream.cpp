#include "net/multipart_stream.hpp"

#include <algorithm>
#include <utility>

#include "net/http.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046

tl::unexpected<Error> malformed(const std::string& what) {
    return fail(Code::invalid_argument, "the multipart/form-data body is malformed: " + what);
}

std::optional<std::string> find_boundary(std::string_view content_type) {
    constexpr std::string_view kType = "multipart/form-data";
    constexpr std::string_view kName = "boundary=";
    if (!equal_ignoring_case(content_type.substr(0, kType.size()), kType)) {
        return std::nullopt;
    }
    std::string_view rest = content_type.substr(kType.size());
    while (!rest.empty()) {
        rest.remove_prefix(std::min(rest.find_first_not_of("; \t"), rest.size()));
        const auto end = std::min(rest.find(';'), rest.size());
        std::string_view parameter = rest.substr(0, end);
        rest.remove_prefix(end);
        if (!equal_ignoring_case(parameter.substr(0, kName.size()), kName)) {
            continue;
        }
        parameter.remove_prefix(kName.size());
        while (parameter.ends_with(' ') || parameter.ends_with('\t')) {
            parameter.remove_suffix(1);
        }
        if (parameter.size() >= 2 && parameter.front() == '"' && parameter.back() == '"') {
            parameter = parameter.substr(1, parameter.size() - 2);
        }
        if (parameter.empty() || parameter.size() > kBoundaryBytesMax) {
            return std::nullopt;
        }
        return std::string(parameter);
    }
    return std::nullopt;
}

// The whole-body parser knows every way to write part headers, so it reads them here as well.
Result<PartHead> parse_head(std::string_view headers) {
    std::string body = "--head\r\n";
    body += headers;
    body += "\r\n\r\n\r\n--head--\r\n";
    auto parts = parse_multipart("multipart/form-data; boundary=head", body);
    if (!parts) {
        return fail(std::move(parts.error()));
    }
    if (parts->size() != 1) {
        return malformed("the headers of a part are not valid");
    }
    FormPart& part = parts->front();
    return PartHead{std::move(part.name), std::move(part.filename), std::move(part.content_type)};
}

}  // namespace

MultipartStream::MultipartStream(std::string boundary, PartSink& sink)
    : delimiter_("\r\n--" + std::move(boundary)), sink_(&sink) {}

Result<MultipartStream> MultipartStream::make(std::string_view content_type, PartSink& sink) {
    auto boundary = find_boundary(content_type);
    if (!boundary) {
        return fail(
            Code::unsupported_media_type,
            "this route takes multipart/form-data with a boundary, not '" +
                std::string(content_type.substr(0, 100)) + "'"
        );
    }
    return MultipartStream(std::move(*boundary), sink);
}

Result<> MultipartStream::feed(std::string_view piece) {
    if (state_ == State::epilogue) {
        return {};
    }
    buffer_ += piece;
    while (true) {
        const auto next = step();
        if (!next) {
            return fail(next.error());
        }
        if (*next == Step::more) {
            break;
        }
    }
    buffer_.erase(0, position_);
    position_ = 0;
    return {};
}

Result<> MultipartStream::finish() const {
    if (state_ != State::epilogue) {
        return malformed("it ends before its last boundary");
    }
    return {};
}

Result<MultipartStream::Step> MultipartStream::step() {
    switch (state_) {
        case State::preamble:
            return skip_preamble();
        case State::delimiter:
            return after_delimiter();
        case State::headers:
            return read_headers();
        case State::body:
            return read_body();
        case State::epilogue:
            position_ = buffer_.size();
            return Step::more;
    }
    return Step::more;
}

Result<MultipartStream::Step> MultipartStream::skip_preamble() {
    const auto found = rest().find(delimiter_);
    if (found == std::string_view::npos) {
        const std::size_t keep = std::min(rest().size(), delimiter_.size() - 1);
        position_ = buffer_.size() - keep;
        return Step::more;
    }
    position_ += found + delimiter_.size();
    state_ = State::delimiter;
    return Step::again;
}

Result<MultipartStream::Step> MultipartStream::after_delimiter() {
    // Spaces are allowed between the boundary and the end of its line.
    const auto text = rest();
    const auto start = std::min(text.find_first_not_of(" \t"), text.size());
    if (start > kPartHeaderBytesMax) {
        return malformed("a boundary is not followed by a line break");
    }
    if (text.size() - start < 2) {
        return Step::more;
    }
    const auto two = text.substr(start, 2);
    if (two == "--" && start == 0) {
        state_ = State::epilogue;
        return Step::again;
    }
    if (two != "\r\n") {
        return malformed("a boundary is not followed by a line break");
    }
    if (++parts_ > kPartsMax) {
        return malformed("it has more than " + std::to_string(kPartsMax) + " parts");
    }
    position_ += start;  // the line break stays: it may be the end of an empty header block
    state_ = State::headers;
    return Step::again;
}

Result<MultipartStream::Step> MultipartStream::read_headers() {
    const auto end = rest().find("\r\n\r\n");
    if (std::min(end, rest().size()) > kPartHeaderBytesMax) {
        return malformed(
            "the headers of a part have more than " + std::to_string(kPartHeaderBytesMax) + " bytes"
        );
    }
    if (end == std::string_view::npos) {
        return Step::more;
    }
    if (end == 0) {
        return malformed("a part has no headers, so it has no name");
    }
    auto head = parse_head(rest().substr(2, end - 2));
    if (!head) {
        return fail(std::move(head.error()));
    }
    position_ += end + 4;
    auto begun = sink_->begin_part(std::move(*head));
    if (!begun) {
        return fail(std::move(begun.error()));
    }
    state_ = State::body;
    return Step::again;
}

Result<MultipartStream::Step> MultipartStream::read_body() {
    const auto text = rest();
    const auto found = text.find(delimiter_);
    const bool is_end = found != std::string_view::npos;
    // What could be the start of a delimiter waits for more.
    const std::size_t safe =
        is_end ? found : text.size() - std::min(text.size(), delimiter_.size() - 1);
    if (safe > 0) {
        auto taken = sink_->part_data(text.substr(0, safe));
        if (!taken) {
            return fail(std::move(taken.error()));
        }
        position_ += safe;
    }
    if (!is_end) {
        return Step::more;
    }
    auto ended = sink_->end_part();
    if (!ended) {
        return fail(std::move(ended.error()));
    }
    position_ += delimiter_.size();
    state_ = State::delimiter;
    return Step::again;
}

}  // namespace comfyd::net
