// Internal to net: the text of a response's head. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "net/server.hpp"

namespace comfyd::net {

struct Framing {
    bool http11 = true;
    bool keep_alive = true;
    bool chunked = false;
    std::optional<std::uint64_t> content_length{};
};

// Content-Length, Transfer-Encoding, Connection and Date come from here, whatever `response` says.
void append_head(std::string& out, const Response& response, const Framing& framing);

// Statuses that never have a body.
inline bool is_bodiless(int status) {
    return status < 200 || status == 204 || status == 304;
}

// {"error":{"code":…,"message":…}}: the answer to requests that no handler sees.
Response make_problem(int status, std::string_view code, std::string_view message);

}  // namespace comfyd::net
