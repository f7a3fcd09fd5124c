// Internal to net: Beast's parser, filling a Request of ours. One per message. Stops after the
// head, so that a handler decides whether and how the body is read; it also refuses what could be
// read in two ways by us and by a proxy before us (request smuggling).
#pragma once

#include <cstring>

#include <boost/beast/http/basic_parser.hpp>

#include "net/host_rules.hpp"
#include "net/server.hpp"

namespace comfyd::net {

namespace http = boost::beast::http;

inline std::string_view as_std(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

// What is wrong with a head, where Beast's own errors do not say it.
enum class HeadFault { none, target_too_long, too_many_fields, transfer_encoding, host };

// The functions that Beast calls carry no `override`: one of them exists from Boost 1.88 on only.
class RequestParser final : public http::basic_parser<true> {
public:
    static constexpr std::size_t kTargetBytesMax = 8 * 1024;
    static constexpr std::size_t kFieldsMax = 128;

    RequestParser(Request& into, std::size_t header_bytes_max) : request_(into) {
        header_limit(static_cast<std::uint32_t>(header_bytes_max));
        body_limit(boost::none);
    }

    HeadFault fault() const { return fault_; }
    bool http11() const { return http11_; }
    bool expects_continue() const { return expects_continue_; }
    bool expects_unknown() const { return expects_unknown_; }

    // Where the next piece of a chunked body goes.
    void set_sink(char* into, std::size_t bytes) {
        sink_ = into;
        sink_bytes_ = bytes;
        delivered_ = 0;
    }
    std::size_t delivered() const { return delivered_; }

private:
    using Error = boost::system::error_code;
    using Text = boost::beast::string_view;

    void refuse(HeadFault fault, Error& error) {
        fault_ = fault;
        error = http::error::bad_value;
    }

    void on_request_impl(http::verb verb, Text method, Text target, int version, Error& error) {
        if (target.size() > kTargetBytesMax) {
            refuse(HeadFault::target_too_long, error);
            return;
        }
        request_.method = to_method(verb);
        request_.method_name = as_std(method);
        request_.target = as_std(target);
        const auto origin_form = without_origin(request_.target);
        authority_ = authority_of(request_.target);
        const auto question = std::min(origin_form.find('?'), origin_form.size());
        request_.path = origin_form.substr(0, question);
        request_.query = origin_form.substr(std::min(question + 1, origin_form.size()));
        http11_ = version == 11;
    }

    void on_response_impl(int, Text, int, Error&) {}

    void on_field_impl(http::field field, Text name, Text value, Error& error) {
        if (head_done_) {
            return;  // a trailer must not change what the handler has already judged
        }
        if (request_.headers.all().size() == kFieldsMax) {
            refuse(HeadFault::too_many_fields, error);
            return;
        }
        const auto text = as_std(value);
        if (field == http::field::transfer_encoding && !equal_ignoring_case(text, "chunked")) {
            refuse(HeadFault::transfer_encoding, error);
            return;
        }
        if (field == http::field::transfer_encoding && !http11_) {
            refuse(HeadFault::transfer_encoding, error);
            return;
        }
        if (field == http::field::content_length &&
            text.find_first_not_of("0123456789") != std::string_view::npos) {
            error = http::error::bad_content_length;  // also "3, 3", which Beast lets pass
            return;
        }
        if (field == http::field::host) {
            ++hosts_;
            is_addressed_twice_ =
                !authority_.empty() &&
                !equal_ignoring_case(without_port(authority_), without_port(text));
        }
        if (field == http::field::expect) {
            expects_continue_ = equal_ignoring_case(text, "100-continue");
            expects_unknown_ = !expects_continue_;
        }
        request_.headers.add(as_std(name), std::string(text));
    }

    void on_trailer_field_impl(http::field, Text, Text, Error&) {}

    void on_header_impl(Error& error) {
        head_done_ = true;
        if (hosts_ > 1 || (hosts_ == 0 && http11_) || is_addressed_twice_) {
            refuse(HeadFault::host, error);
        }
    }

    void on_body_init_impl(const boost::optional<std::uint64_t>&, Error&) {}
    std::size_t on_body_impl(Text body, Error&) { return body.size(); }
    void on_chunk_header_impl(std::uint64_t, Text, Error&) {}

    std::size_t on_chunk_body_impl(std::uint64_t, Text body, Error&) {
        const std::size_t count = std::min(body.size(), sink_bytes_ - delivered_);
        std::memcpy(sink_ + delivered_, body.data(), count);
        delivered_ += count;
        return count;
    }

    void on_finish_impl(Error&) {}

    // "http://host/path", as sent to proxies, means "/path" (RFC 9112, 3.2.2).
    static std::string_view without_origin(std::string_view target) {
        const auto separator = target.find("://");
        if (target.starts_with('/') || separator == std::string_view::npos) {
            return target;
        }
        const auto path = target.find('/', separator + 3);
        return path == std::string_view::npos ? "/" : target.substr(path);
    }

    static std::string authority_of(std::string_view target) {
        const auto separator = target.find("://");
        if (target.starts_with('/') || separator == std::string_view::npos) {
            return {};
        }
        const auto authority = target.substr(separator + 3);
        return std::string(authority.substr(0, authority.find_first_of("/?")));
    }

    static Method to_method(http::verb verb) {
        switch (verb) {
            case http::verb::get:
                return Method::get;
            case http::verb::head:
                return Method::head;
            case http::verb::post:
                return Method::post;
            case http::verb::put:
                return Method::put;
            case http::verb::patch:
                return Method::patch;
            case http::verb::delete_:
                return Method::del;
            case http::verb::options:
                return Method::options;
            default:
                return Method::other;
        }
    }

    Request& request_;  // the connection's, which owns this parser too
    char* sink_ = nullptr;
    std::size_t sink_bytes_ = 0;
    std::size_t delivered_ = 0;
    int hosts_ = 0;
    std::string authority_;            // of an absolute target
    bool is_addressed_twice_ = false;  // by that and by another Host: a proxy may take the first
    HeadFault fault_ = HeadFault::none;
    bool http11_ = false;
    bool head_done_ = false;
    bool expects_continue_ = false;
    bool expects_unknown_ = false;
};

}  // namespace comfyd::net
