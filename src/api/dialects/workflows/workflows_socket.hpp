// The WebSocket of one execution: messages out as in the Server-Sent Events stream, previews as
// binary frames, and
// {"type":"cancel"} and {"type":"ping"} in. One reader and one writer run at the same time; both
// end before the handler returns. Runs on the connection's thread.
#pragma once

#include <optional>
#include <string>

#include "api/dialects/workflows/workflows.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::workflows {

// ComfyUI's binary preview: big-endian 1, then 1 for JPEG or 2 for PNG, then the picture.
std::string encode_preview(const jobs::Event& event);

enum class ClientMessage { cancel, ping };
// Code::invalid_argument or Code::malformed_json, for an answer; the connection stays open.
Result<ClientMessage> decode_client_message(const std::string& data, bool binary);

// The call's path parameter is the job's id. ?since= resumes, ?previews=1 adds previews.
Task<> serve_socket(Call& call, const Services& services, const Version& version);

}  // namespace comfyd::api::workflows
