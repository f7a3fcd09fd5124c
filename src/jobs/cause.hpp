// Why an attempt failed, as far as it decides what is done about it. docs/failures.md tells the
// whole story. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "jobs/job.hpp"

namespace comfyd::jobs {

enum class Cause {
    validation,            // the worker, or comfyd, does not take the workflow
    node_error,            // a node raised
    out_of_memory,         // of the GPU, or of the machine
    cuda_fault,            // the process can use its GPU no more
    hung,                  // the worker answers and nothing happens there
    worker_lost,           // it went away while it ran the job, or forgot it
    worker_refused,        // it never began
    worker_misconfigured,  // its GPU or its software cannot do what a node asks
    worker_disk_full,
    model_missing,
    model_damaged,
    model_unavailable,  // no source gave it
    interrupted,        // by somebody else on the worker
    timeout,
    storage,  // of comfyd: the outputs could not be kept
    poison,   // the job took down as many workers as a job may
    unknown,
};
inline constexpr int kCauses = static_cast<int>(Cause::unknown) + 1;

struct CauseInfo {
    Cause cause;
    std::string_view name;  // as on the wire
    Category category;
    std::string_view suggested_action;
    std::optional<int> retry_after_s;  // what a client is told to wait before it asks again
    int retries;                       // of an attempt that failed so, unless it is set otherwise
    bool takes_worker_down;            // the worker does not go on as before
    bool is_workers_fault;             // and never the workflow's
    bool has_run;                      // it may have used the worker's time
};
const CauseInfo& info(Cause cause);
std::string_view to_string(Cause cause);
std::optional<Cause> parse_cause(std::string_view name);

// Of an exception as ComfyUI reports it: its class and its own text. What the class says counts
// before the text, which may quote what a client wrote.
Cause cause_of_exception(std::string_view type, std::string_view message);
// The memory that ran out was not the GPU's.
bool is_host_memory(std::string_view type, std::string_view message);
// GPU memory that a run would have needed by the text of its exception; nullopt: it does not say.
std::optional<std::uint64_t> memory_wanted(std::string_view message);

// In the details of a failure: the name of its cause, where whoever noticed it knew more than its
// code and its exception say.
inline constexpr std::string_view kCauseKey = "cause";
Cause cause_of(const Failure& failure);
Cause cause_of(const Error& error);

// Of a model that a job waited for and that could not be fetched.
Cause cause_of_fetch(Code code);

// What clients are told of a failure: by its cause once that was judged, before by its code.
Category category_of(const Failure& failure);
std::string_view suggested_action_of(const Failure& failure);
bool is_judged(const Failure& failure);

}  // namespace comfyd::jobs
