// Finds the file that a client of the native API means: its own uploads, and the outputs and
// previews of its own jobs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/dialects/native/context.hpp"

namespace comfyd::api::native {

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

// "a.png [temp]" -> "a.png" and "temp". Without such an ending the folder stays as it is.
void split_annotation(std::string& name, std::string& folder);

// nullopt: the tenant has no such file. A file of a job is found by its own subfolder; without that
// the newest of the name is taken.
Task<Result<std::optional<FoundFile>>> find_file(
    Context& context, std::string tenant, FileQuery query
);

// An input of a loader node that names a file which the tenant uploaded or made.
struct FileReference {
    std::string node;
    std::string input;
    std::string value;       // as the client wrote it
    json::object reference;  // to the asset, for the worker that runs the prompt
};
Task<Result<std::vector<FileReference>>> find_references(
    Context& context, std::string tenant, const json::object& prompt
);
// Puts the references into the inputs where they were found.
void apply_references(json::object& prompt, const std::vector<FileReference>& references);

}  // namespace comfyd::api::native
