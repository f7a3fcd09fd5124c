// How ComfyUI's clients see ids and files of jobs. Pure.
//
// Every worker counts its files for itself, so the same name means another file on each. A client
// therefore sees each file of a job in a subfolder of the job's own:
//   {"filename": "ComfyUI_00001_.png", "subfolder": "", …}  on the worker
//   {"filename": "ComfyUI_00001_.png", "subfolder": "<job id>", …}  here
// which says without any table whose file it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "jobs/job.hpp"

namespace comfyd::api::native {

inline constexpr std::string_view kDialect = "comfyui";

// The id under which clients know the job: their own, where they gave one.
std::string prompt_id_of(const jobs::Job& job);
std::string client_id_of(const jobs::Job& job);

// The subfolder that clients see.
std::string outer_subfolder(const JobId& job, std::string_view subfolder);
struct InnerFolder {
    JobId job;
    std::string subfolder;  // as the worker has it
};
// nullopt: no subfolder of a job.
std::optional<InnerFolder> inner_folder(std::string_view subfolder);

// Renames the files of one node's ui dictionary; anything else stays as it is.
void rename_files(json::object& ui, const JobId& job);
// `outputs`: node id -> ui.
json::object renamed_outputs(json::object outputs, const JobId& job);

}  // namespace comfyd::api::native
