// What POST /prompt_sync reads and answers, whoever serves it: the gateway and the agent beside a
// ComfyUI speak one language. Values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"

namespace comfyd::comfy::prompt_sync {

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
Result<Options> decode_options(
    const json::object& body,
    std::string_view timeout_query,
    Millis timeout_default = kTimeoutDefault
);

// 408 timeout, 503 no worker, 400 failed in a node, 422 not valid, 500 otherwise.
int http_status(Code code);

// An answer that is no result.
struct Trouble {
    Error error;
    std::string prompt_id{};     // empty: there is none
    json::object node_errors{};  // as ComfyUI has them
    json::object outputs{};      // where there are results in spite of it
};
// {"status","error","code","detail","prompt_id","node_errors","timestamp"}
json::object encode_trouble(const Trouble& trouble, Time now);
Error out_of_time(const std::string& prompt_id, const Options& options);
Error too_large_inline(std::uint64_t bytes);

// {"prompt_id","status","execution_time","outputs","node_errors"}; `node_errors` as ComfyUI has
// them.
json::object encode_result(
    const std::string& prompt_id, Millis took, json::object outputs, const json::object& node_errors
);
// {"filename","subfolder","type","data"}, at the end of its node's list.
struct Picture {
    std::string filename;
    std::string subfolder;
    std::string type;
    std::string base64;
};
void add_picture(json::object& images, std::string_view node, Picture picture);

}  // namespace comfyd::comfy::prompt_sync
