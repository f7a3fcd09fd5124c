// What ComfyUI's clients are told, as frames for their sockets. Pure.
#pragma once

#include <string>

#include "comfy/server/frames.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

using comfy::server::FramePtr;
using comfy::server::make_frame;
using comfy::server::make_status;

// What the worker said of the job. The client knows the prompt by its own id, and files by the
// names that it can fetch them by.
FramePtr to_frame(jobs::WorkerMessage said, const JobId& job, const std::string& prompt_id);

}  // namespace comfyd::api::native
