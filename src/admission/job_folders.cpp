#include "admission/job_folders.hpp"

namespace comfyd::admission {

std::string outer_subfolder(const JobId& job, std::string_view subfolder) {
    std::string outer = job.to_string();
    if (!subfolder.empty()) {
        outer.append("/").append(subfolder);
    }
    return outer;
}

std::optional<InnerFolder> inner_folder(std::string_view subfolder) {
    const auto slash = subfolder.find('/');
    const auto job = JobId::parse(subfolder.substr(0, slash));
    if (!job) {
        return std::nullopt;
    }
    return InnerFolder{
        *job,
        std::string(slash == std::string_view::npos ? "" : subfolder.substr(slash + 1)),
    };
}

}  // namespace comfyd::admission
