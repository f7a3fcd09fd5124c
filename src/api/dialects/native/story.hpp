// A job as ComfyUI tells of it: queue items, history entries, endings. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/dialects/native/run_notes.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

// {"status": {"exec_info": {"queue_remaining": n}}}
json::object status_data(std::size_t queue_remaining);

// The last message about a job that ran: execution_success, execution_error or
// execution_interrupted, and its data.
std::pair<std::string, json::object> ending(
    const jobs::Job& job, const std::string& prompt_id, const RunNotes& notes, Time at
);

// [number, prompt_id, prompt, extra_data, [output ids]]
json::array queue_item(const jobs::Job& job, const jobs::Spec& spec);

// {"prompt", "outputs", "status", "meta"}
json::object history_entry(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
);

// Whether the job is in the history: it ended, and not by being taken out of the queue.
bool is_in_history(const jobs::Job& job);

// An entry of GET /api/jobs.
json::object job_summary(const jobs::Job& job);
// The same with workflow, outputs and status: GET /api/jobs/{id}.
json::object job_details(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
);

}  // namespace comfyd::api::native
