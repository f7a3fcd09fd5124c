// POST /prompt_sync: runs a prompt and answers with its result, for clients that cannot wait in any
// other way. The prompt is one of the native API in every other respect: it is seen in /queue and
// /history, its client hears of it by /ws, and files are named in the same way.
//
// Decoding and encoding are here as free functions for tests. Runs on the connection's thread.
#pragma once

#include <memory>

#include "api/dialects/execution/execution.hpp"
#include "api/router.hpp"
#include "base/json.hpp"
#include "comfy/prompt_sync.hpp"
#include "jobs/service.hpp"

namespace comfyd::api {

namespace native {
struct Context;
}

// Called by add_native().
void add_prompt_sync(Router& router, std::shared_ptr<native::Context> context);

namespace prompt_sync {

// As the agent beside a ComfyUI has them, too.
using comfy::prompt_sync::decode_options;
using comfy::prompt_sync::encode_trouble;
using comfy::prompt_sync::http_status;
using comfy::prompt_sync::kInlineBytesMax;
using comfy::prompt_sync::Options;
using comfy::prompt_sync::Trouble;

// Why a job that ended has no result. REQUIRES: an end that is no success.
Trouble trouble_of(const jobs::Job& job);

// ComfyUI's outputs, with names as GET /view takes them and a link for each file that is stored.
json::object encode_outputs(const jobs::Job& job, const execution::Links& links);
// {"prompt_id","status","execution_time","outputs","node_errors"}
json::object encode_result(
    const jobs::Job& job, const json::object& node_errors, const execution::Links& links
);

json::object operation();
json::object schemas();

}  // namespace prompt_sync
}  // namespace comfyd::api
