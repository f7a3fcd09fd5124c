// What ComfyUI's clients are told, as frames for their sockets. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/dialects/native/mailbox.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

FramePtr make_frame(std::string_view type, json::object data);
// The length of the queue. `for_crowd`: so many are told that it may come later.
FramePtr make_status(std::size_t unfinished, bool for_crowd);
// What the worker said of the job. The client knows the prompt by its own id, and files by the
// names that it can fetch them by.
FramePtr to_frame(jobs::WorkerMessage said, const JobId& job, const std::string& prompt_id);

}  // namespace comfyd::api::native
