// Internal to net: Beast's parser, filling a ClientResponse. One per message. The body goes to the
// response or to a sink; too much of it is an error.
#pragma once

#include <algorithm>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "net/client.hpp"

namespace comfyd::net {

namespace http = boost::beast::http;

// The functions that Beast calls carry no `override`: one of them exists from Boost 1.88 on only.
class ResponseParser final : public http::basic_parser<false> {
public:
    static constexpr std::uint32_t kHeaderBytesMax = 64 * 1024;
    static constexpr std::size_t kFieldsMax = 512;
    static constexpr std::size_t kReasonBytesMax = 64 * 1024;

    ResponseParser(ClientResponse& into, std::uint64_t body_bytes_max, const Client::Sink& sink)
        : response_(into), sink_(sink), body_bytes_max_(body_bytes_max) {
        header_limit(kHeaderBytesMax);
        body_limit(boost::none);
        eager(true);
    }

    // The caller's own failure, where put() failed because of one.
    std::optional<Error>& failure() { return failure_; }

private:
    using ErrorCode = boost::system::error_code;
    using Text = boost::beast::string_view;

    void on_request_impl(http::verb, Text, Text, int, ErrorCode&) {}

    void on_response_impl(int status, Text, int, ErrorCode&) { response_.status = status; }

    void on_field_impl(http::field, Text name, Text value, ErrorCode& error) {
        if (head_done_) {
            return;
        }
        if (response_.headers.all().size() == kFieldsMax) {
            error = http::error::header_limit;
            return;
        }
        response_.headers.add({name.data(), name.size()}, std::string(value.data(), value.size()));
    }

    void on_trailer_field_impl(http::field, Text, Text, ErrorCode&) {}

    void on_header_impl(ErrorCode& error) {
        head_done_ = true;
        const auto length = has_body() ? content_length() : boost::none;
        if (length && *length > body_bytes_max_) {
            refuse_size(error);
        } else if (length && !sink_) {
            constexpr std::uint64_t kReserveBytesMax = 1024 * 1024;
            response_.body.reserve(static_cast<std::size_t>(std::min(*length, kReserveBytesMax)));
        }
    }

    // content_length() is for after the head only, and Beast sets the state before it calls us.
    bool has_body() const { return !is_done(); }

    void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) {}
    std::size_t on_body_impl(Text body, ErrorCode& error) { return take(body, error); }
    void on_chunk_header_impl(std::uint64_t, Text, ErrorCode&) {}
    std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode& error) {
        return take(body, error);
    }
    void on_finish_impl(ErrorCode&) {}

    void refuse_size(ErrorCode& error) {
        failure_ = Error(
            Code::payload_too_large,
            "the answer is larger than " + std::to_string(body_bytes_max_) + " bytes"
        );
        error = http::error::body_limit;
    }

    std::size_t take(Text body, ErrorCode& error) {
        received_ += body.size();
        if (received_ > body_bytes_max_) {
            refuse_size(error);
            return body.size();
        }
        const std::string_view piece(body.data(), body.size());
        if (!sink_) {
            response_.body += piece;
        } else if (response_.status / 100 == 2) {
            auto taken = sink_(piece);
            if (!taken) {
                failure_ = std::move(taken.error());
                error = http::error::body_limit;
            }
        } else {  // it says why
            response_.body += piece.substr(0, kReasonBytesMax - response_.body.size());
        }
        return body.size();
    }

    ClientResponse& response_;  // both are the caller's, in the frame that owns this parser
    const Client::Sink& sink_;
    std::uint64_t body_bytes_max_;
    std::uint64_t received_ = 0;
    bool head_done_ = false;
    std::optional<Error> failure_;
};

}  // namespace comfyd::net
