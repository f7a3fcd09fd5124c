// Answers in the form that ComfyUI's HTTP server gives them. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "net/server.hpp"

namespace comfyd::comfy {

// The release of ComfyUI whose protocol is spoken, in the form that its clients compare.
inline constexpr std::string_view kProtocolVersion = "0.33.0";

// JSON in Python's spelling.
net::Response json_reply(int status, const json::value& body);
net::Response json_text_reply(int status, std::string json);
net::Response text_reply(int status, std::string text);
net::Response empty_reply(int status);
// {"error": text}
net::Response error_reply(int status, std::string_view text);

// GET /features, and the data of the message feature_flags.
json::object server_features(std::uint64_t upload_bytes_max);

// GET /internal/logs/raw, and the data of the message logs. `lines`: {"t", "m"}.
json::object log_panel(json::array lines);

}  // namespace comfyd::comfy
