// The execute API: POST /comfyui/execute with inputs, output_config and execution_config, and
// status, list, cancel and events of what it started. Decoding and encoding are here as free
// functions for tests. `services` outlives the router.
#pragma once

#include <string>
#include <string_view>

#include "api/dialects/execution/execution.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/submission.hpp"

namespace comfyd::api {

void add_comfyui_execute(Router& router, const Services& services);

namespace comfyui_execute {

using execution::Decoded;
Result<Decoded> decode_request(json::object body);

// {"status":"accepted","execution_id","estimated_duration","queue_position","webhook_url"}
json::object encode_accepted(const jobs::View& view, std::string_view webhook_url);
// The execution object with this API's wording of errors and "estimated_duration".
json::object encode_status(const execution::Shown& shown, const execution::Links& links);
// The same for a message of the event stream.
json::object encode_message(json::object message);
// {"status":"error","error_code":"INVALID_WORKFLOW","message","details"}
json::object encode_error(const Error& error);

json::object operation_execute();
json::object operation_get();
json::object operation_list();
json::object operation_cancel();
json::object operation_events();
json::object schemas();

}  // namespace comfyui_execute
}  // namespace comfyd::api
