// Why a prompt is not taken, in ComfyUI's words. Pure; any thread.
#pragma once

#include "admission/submission.hpp"
#include "base/json.hpp"

namespace comfyd::api::native {

struct PromptRefusal {
    json::object error;  // {type, message, details, extra_info}
    json::object node_errors;
};

// REQUIRES: refusal.why is the prompt's fault, not Why::failed.
PromptRefusal encode_refusal(admission::Refusal refusal);

}  // namespace comfyd::api::native
