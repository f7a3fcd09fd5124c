// A request on one of ComfyUI's routes: what it says, and how it is answered. On the connection's
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/task.hpp"
#include "comfy/replies.hpp"
#include "net/server.hpp"

namespace comfyd::comfy::server {

struct Call {
    net::Exchange& exchange;
    std::vector<std::string> parameters{};  // of the path, decoded
    std::vector<std::pair<std::string, std::string>> query{};

    const net::Request& request() const { return exchange.request(); }
    bool has_query(std::string_view name) const;
    std::string_view query_value(std::string_view name) const;  // empty when absent
    // "true" in any case.
    bool query_is_true(std::string_view name) const;
};

// The client may be gone: then it needs no answer.
Task<> answer(Call& call, net::Response response);

// The body. Code::payload_too_large in ComfyUI's words, or what the connection says.
Task<Result<std::string>> read_text(Call& call, std::uint64_t bytes_max);
// The same as JSON that Python would read; null for what is none, as for an empty one.
Task<Result<json::value>> read_json(Call& call, std::uint64_t bytes_max);
// The same; an empty object for anything else than an object.
Task<Result<json::object>> read_members(Call& call, std::uint64_t bytes_max);
bool is_true(const json::object& in, std::string_view key);

// A failure that ComfyUI has no words for, in the form of its refusals.
net::Response encode_error(const Error& error);
// What ComfyUI answers when a handler of its own fails.
net::Response trouble();

}  // namespace comfyd::comfy::server
