// Finds the file that a tenant means by a name: its own uploads, and the outputs and previews of
// its own jobs.
#pragma once

#include <optional>
#include <string>

#include "admission/desk.hpp"

namespace comfyd::admission {

struct FileQuery {
    std::string name;
    std::string subfolder;
    std::string folder = "output";  // "input", "output", "temp"
};

struct FoundFile {
    std::optional<assets::Asset> asset;
    // Without an asset: a file of a job that still runs.
    JobId job{};
    jobs::WorkerFile live{};
};

// nullopt: the tenant has no such file. A file of a job is found by its own subfolder; without that
// the newest of the name is taken.
Task<Result<std::optional<FoundFile>>> find_file(
    const Desk& desk, std::string tenant, FileQuery query
);

}  // namespace comfyd::admission
