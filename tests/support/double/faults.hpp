// What can go wrong at a double, as a plain value. Three ways to switch a fault on:
// - DoubleOptions::faults and ComfyDouble::set_faults
// - POST /_double/faults with an object of the names below; members that are absent keep their
// value, and
//   {"clear": true, …} starts from none
// - for one prompt: an input "_fault" on any node of it, "name", "name=value" or several with
// commas
//   ("slow=200,duplicate"). Only the faults of the first group can be given this way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace comfyd::support {

// Faults of a run.
struct RunFaults {
    std::int64_t slow = 0;  // further milliseconds in the last node
    bool held = false;      // the last node ends when a file "let-go" lies beside the journal
    bool hang = false;      // the last node never ends, whatever is sent to /interrupt
    bool hang_interruptible = false;  // the last node never ends, but /interrupt works
    bool crash_mid_job = false;       // crash() in the last node; as an executable exit status 9
    bool ws_silence = false;          // no message about it, history is right
    std::int64_t ws_disconnect =
        0;             // the client's socket is dropped after so many messages of a prompt, once
    bool oom = false;  // execution_error torch.OutOfMemoryError in the last node
    // execution_error with an illegal memory access in the last node; from the next /free on it
    // accepts prompts and never starts them, until it is started anew
    bool cuda_fault = false;
    bool node_error = false;   // execution_error with a traceback in the last node
    bool merge_error = false;  // merged prompts fail where latents are joined; others are not hit
    bool bad_json =
        false;  // broken text frames between the real ones, and one broken history answer
    bool duplicate = false;        // every message twice
    bool out_of_order = false;     // executing late, executed after execution_success
    bool interrupted = false;      // execution_interrupted by somebody else in the last node
    bool lose_prompt = false;      // forgotten when its turn comes: no message, no history
    std::int64_t big_preview = 0;  // preview frames of so many bytes
    bool garbage = false;  // unknown and broken text and binary frames between the real ones

    friend bool operator==(const RunFaults&, const RunFaults&) = default;
    // What either of them has.
    RunFaults combined_with(const RunFaults& other) const;
    // Code::invalid_argument names what is unknown or of a wrong type.
    Result<> set(std::string_view name, const json::value& value);
    Result<> set_from_marker(std::string_view marker);
};

struct Faults {
    RunFaults run{};
    std::int64_t run_prompts =
        -1;                       // "prompts": the run faults hold for so many prompts; -1 for all
    bool ws_refuse = false;       // /ws answers 503
    bool dead_worker = false;     // accepts prompts and never starts them
    std::int64_t http_500 = 0;    // so many next requests to http_500_path are answered 500
    std::string http_500_path{};  // prefix without /api; empty for any
    std::int64_t no_response =
        0;  // so many next POST /prompt are accepted, then the connection breaks
    std::int64_t slow_http = 0;       // milliseconds before any answer
    std::int64_t missing_output = 0;  // so many next /view are 404
    bool wants_rest = false;          // its agent is to make it anew

    // See the top of the file. Nothing is changed when it fails.
    Result<> update(const json::object& from);
    json::object to_json() const;
};

}  // namespace comfyd::support
