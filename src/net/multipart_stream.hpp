// multipart/form-data read piece by piece, for uploads that do not fit into memory. Pure; not
// thread-safe. Parts may come in any order; the sink decides what to keep.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace comfyd::net {

struct PartHead {
    std::string name;
    std::optional<std::string> filename;
    std::string content_type;
};

class PartSink {
public:
    virtual ~PartSink() = default;
    // A failure ends the parsing and is handed to the caller of feed().
    virtual Result<> begin_part(PartHead head) = 0;
    virtual Result<> part_data(std::string_view piece) = 0;
    virtual Result<> end_part() = 0;
};

class MultipartStream {
public:
    static constexpr std::size_t kPartsMax = 256;
    static constexpr std::size_t kPartHeaderBytesMax = 16 * 1024;

    // Code::unsupported_media_type when `content_type` is not multipart/form-data with a boundary.
    // The sink outlives the stream.
    static Result<MultipartStream> make(std::string_view content_type, PartSink& sink);

    // Code::invalid_argument when malformed; the sink's failures. Not to be called after a failure.
    Result<> feed(std::string_view piece);
    // After the last piece. Code::invalid_argument when the body was cut off.
    Result<> finish() const;

private:
    enum class State { preamble, delimiter, headers, body, epilogue };
    enum class Step { again, more };

    MultipartStream(std::string boundary, PartSink& sink);
    Result<Step> step();
    Result<Step> skip_preamble();
    Result<Step> after_delimiter();
    Result<Step> read_headers();
    Result<Step> read_body();
    std::string_view rest() const { return std::string_view(buffer_).substr(position_); }

    std::string delimiter_;  // with the line break before it
    PartSink* sink_;
    State state_ = State::preamble;
    std::size_t parts_ = 0;
    // The first delimiter may stand at the very start, without the line break that others have.
    std::string buffer_ = "\r\n";
    std::size_t position_ = 0;
};

}  // namespace comfyd::net
