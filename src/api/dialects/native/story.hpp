// A job as ComfyUI tells of it: queue items, history entries, endings. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/dialects/native/run_notes.hpp"
#include "comfy/server/prompt_views.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

// The last message about a job that ran: execution_success, execution_error or
// execution_interrupted, and its data.
std::pair<std::string, json::object> ending(
    const jobs::Job& job, const std::string& prompt_id, const RunNotes& notes, Time at
);

comfy::server::PromptView view_prompt(const jobs::Job& job, const jobs::Spec& spec);

comfy::server::HistoryView view_history(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
);

// Whether the job is in the history: it ended, and not by being taken out of the queue.
bool is_in_history(const jobs::Job& job);

comfy::server::JobView view_job(const jobs::Job& job);
// The same with its details.
comfy::server::JobView view_job(
    const jobs::Job& job, const jobs::Spec& spec, const std::optional<RunNotes>& notes
);

}  // namespace comfyd::api::native
