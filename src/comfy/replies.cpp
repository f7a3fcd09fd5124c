#include "comfy/replies.hpp"

#include <utility>

namespace comfyd::comfy {

net::Response json_reply(int status, const json::value& body) {
    return json_text_reply(status, json::serialize_python(body));
}

net::Response json_text_reply(int status, std::string json) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "application/json; charset=utf-8");
    response.body = std::move(json);
    return response;
}

net::Response text_reply(int status, std::string text) {
    net::Response response;
    response.status = status;
    response.headers.set("Content-Type", "text/plain; charset=utf-8");
    response.body = std::move(text);
    return response;
}

net::Response empty_reply(int status) {
    net::Response response;
    response.status = status;
    return response;
}

net::Response error_reply(int status, std::string_view text) {
    json::object body;
    body["error"] = text;
    return json_reply(status, body);
}

json::object server_features(std::uint64_t upload_bytes_max) {
    return {
        {"supports_preview_metadata", true},
        {"supports_model_type_tags", true},
        {"max_upload_size", upload_bytes_max},
        {"extension", {{"manager", {{"supports_v4", true}}}}},
        {"node_replacements", true},
        {"assets", false},
    };
}

json::object log_panel(json::array lines) {
    json::object panel;
    panel["entries"] = std::move(lines);
    panel["size"] = {{"cols", 80}, {"rows", 24}};
    return panel;
}

}  // namespace comfyd::comfy
