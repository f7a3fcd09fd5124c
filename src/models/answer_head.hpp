// What the head of a server's answer says of a file. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "net/http.hpp"

namespace comfyd::models {

// A whole number and nothing else.
std::optional<std::uint64_t> number_in(std::string_view text);

// Of a Content-Range: "bytes 100-199/200".
struct SentRange {
    std::uint64_t first = 0;
    std::uint64_t total = 0;
};
// nullopt: it is not all from there to the end of a file whose size is told.
std::optional<SentRange> parse_content_range(std::string_view text);

// Empty: there is none, or a weak one, which does not say that the bytes are the same.
std::string strong_etag(const net::Headers& headers);

// Why a server gave no file. Code::unauthorized, Code::forbidden, Code::not_found,
// Code::rate_limited, Code::upstream_error; its details have the status and when it may be asked
// again.
Error refusal(const std::string& host, int status, const net::Headers& headers);

// It is the server that fails, and not what it was asked for.
bool is_outage(const Error& error);

}  // namespace comfyd::models
