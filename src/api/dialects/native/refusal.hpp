// Why a prompt is not taken, in ComfyUI's words. Pure; any thread.
#pragma once

#include "admission/submission.hpp"
#include "comfy/server/backend.hpp"

namespace comfyd::api::native {

using comfy::server::PromptRefusal;

// REQUIRES: refusal.why is the prompt's fault, not Why::failed.
PromptRefusal encode_refusal(admission::Refusal refusal);

}  // namespace comfyd::api::native
