// How clients name the files of jobs. Pure.
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

#include "base/id.hpp"

namespace comfyd::admission {

// The subfolder that clients see.
std::string outer_subfolder(const JobId& job, std::string_view subfolder);
struct InnerFolder {
    JobId job;
    std::string subfolder;  // as the worker has it
};
// nullopt: no subfolder of a job.
std::optional<InnerFolder> inner_folder(std::string_view subfolder);

}  // namespace comfyd::admission
