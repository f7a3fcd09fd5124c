// How ComfyUI's clients see ids and files of jobs. Pure.
#pragma once

#include <string>
#include <string_view>

#include "admission/job_folders.hpp"
#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

inline constexpr std::string_view kDialect = "comfyui";

// The id under which clients know the job: their own, where they gave one.
std::string prompt_id_of(const jobs::Job& job);
std::string client_id_of(const jobs::Job& job);

using admission::inner_folder;
using admission::outer_subfolder;

// Renames the files of one node's ui dictionary; anything else stays as it is.
void rename_files(json::object& ui, const JobId& job);
// `outputs`: node id -> ui.
json::object renamed_outputs(json::object outputs, const JobId& job);

}  // namespace comfyd::api::native
