// POST /prompt_sync: runs a prompt and answers with its result, for clients that cannot wait in any
// other way. The prompt is one of the native API in every other respect: it is seen in /queue and
// /history, its client hears of it by /ws, and files are named in the same way.
//
// Decoding and encoding are here as free functions for tests. Runs on the connection's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/dialects/execution/execution.hpp"
#include "api/router.hpp"
#include "base/json.hpp"
#include "jobs/service.hpp"

namespace comfyd::api {

namespace native {
struct Context;
}

// Called by add_native().
void add_prompt_sync(Router& router, std::shared_ptr<native::Context> context);

namespace prompt_sync {

inline constexpr Millis kTimeoutDefault = std::chrono::seconds(300);
inline constexpr Millis kTimeoutMin{100};
inline constexpr Millis kTimeoutMax = std::chrono::hours(24);
inline constexpr std::uint64_t kInlineBytesMax = 32 * 1024 * 1024;  // of all pictures together

struct Options {
    bool return_base64 = false;
    Millis timeout = kTimeoutDefault;
    bool cancel_on_timeout = true;  // else the prompt goes on without its client
};
// return_image_base64, timeout (seconds; ?timeout= wins) and on_timeout. Code::invalid_argument.
Result<Options> decode_options(const json::object& body, std::string_view timeout_query);

// 408 timeout, 503 no worker, 400 failed in a node, 422 not valid, 500 otherwise.
int http_status(Code code);

// An answer that is no result.
struct Trouble {
    Error error;
    std::optional<JobId> job{};
    json::object node_errors{};  // as ComfyUI has them
    json::object outputs{};      // where there are results in spite of it
};
// {"status","error","code","detail","prompt_id","node_errors","timestamp"}
json::object encode_trouble(const Trouble& trouble, Time now);
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
