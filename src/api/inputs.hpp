// Files that a submission names by where they can be had ("https://…", "data:…", "asset:<id>",
// "blake3:<hash>"): brought into the asset store before the job is accepted, so that no job depends
// on an address that may vanish. For every dialect; runs on the connection's executor.
#pragma once

#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"
#include "workflow/file_inputs.hpp"
#include "workflow/issue.hpp"

namespace comfyd::api {

struct Fetched {
    // {"__type":"core/ASSET","info":{…}} for each source, in their order; empty where it failed.
    std::vector<json::object> references;
    // What cannot be had: UNAUTHORIZED_DOMAIN, URL_NOT_ACCESSIBLE, INVALID_CONTENT_TYPE,
    // FILE_TOO_LARGE, INVALID_FILE_SOURCE, missing_asset.
    std::vector<workflow::Issue> issues;
};

// Fails only where the server itself is to blame: Code::rate_limited when too many requests fetch
// files already, and what the store says.
Task<Result<Fetched>> fetch_inputs(
    const Call& call, const Services& services, std::vector<workflow::FileSource> sources
);

// Code::missing_asset where that is all, else Code::invalid_workflow. `issues` holds at least one.
Error inputs_error(const std::vector<workflow::Issue>& issues);

// Fetches, and puts the references in the place of the sources.
Task<Result<>> place_inputs(
    const Call& call,
    const Services& services,
    std::vector<workflow::FileSource> sources,
    json::object& graph
);

}  // namespace comfyd::api
