#include "comfy/server/call.hpp"

#include <algorithm>

#include "comfy/messages.hpp"

namespace comfyd::comfy::server {

bool Call::has_query(std::string_view name) const {
    return std::ranges::any_of(query, [name](const auto& entry) { return entry.first == name; });
}

std::string_view Call::query_value(std::string_view name) const {
    const auto found =
        std::ranges::find_if(query, [name](const auto& entry) { return entry.first == name; });
    return found == query.end() ? std::string_view() : std::string_view(found->second);
}

bool Call::query_is_true(std::string_view name) const {
    return net::equal_ignoring_case(query_value(name), "true");
}

Task<> answer(Call& call, net::Response response) {
    auto sent = co_await call.exchange.send(std::move(response));
    static_cast<void>(sent);
}

Task<Result<std::string>> read_text(Call& call, std::uint64_t bytes_max) {
    auto body = co_await call.exchange.read_body(bytes_max);
    if (!body && body.error().code == Code::payload_too_large) {
        body.error().message =
            "Maximum request body size " + std::to_string(bytes_max) + " exceeded.";
    }
    co_return body;
}

Task<Result<json::value>> read_json(Call& call, std::uint64_t bytes_max) {
    auto text = co_await read_text(call, bytes_max);
    if (!text) {
        co_return fail(std::move(text.error()));
    }
    auto parsed = parse_python(*text);
    co_return parsed ? std::move(*parsed) : json::value();
}

Task<Result<json::object>> read_members(Call& call, std::uint64_t bytes_max) {
    auto body = co_await read_json(call, bytes_max);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    co_return body->is_object() ? std::move(body->get_object()) : json::object();
}

bool is_true(const json::object& in, std::string_view key) {
    const json::value* value = json::find(in, key);
    return value != nullptr && *value == json::value(true);
}

net::Response encode_error(const Error& error) {
    const int status = info(error.code).http_status;
    if (error.code == Code::method_not_allowed) {
        return text_reply(status, "405: Method Not Allowed");
    }
    if (error.code == Code::payload_too_large) {
        return text_reply(status, error.message);
    }
    const json::object body{
        {"error",
         {{"type", to_string(error.code)},
          {"message", error.message},
          {"details", ""},
          {"extra_info", error.details}}},
        {"node_errors", json::object()},
    };
    net::Response response = json_reply(status, body);
    const json::value* wait = json::find(error.details, "retry_after");
    if (wait != nullptr && wait->is_int64() && wait->get_int64() > 0) {
        response.headers.set("Retry-After", std::to_string(wait->get_int64()));
    }
    return response;
}

net::Response trouble() {
    return text_reply(500, "500 Internal Server Error\n\nServer got itself in trouble");
}

}  // namespace comfyd::comfy::server
