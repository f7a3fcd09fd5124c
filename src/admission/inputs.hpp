// Files that a submission names by where they can be had ("https://…", "data:…", "asset:<id>",
// "blake3:<hash>"): brought into the asset store before the job is accepted, so that no job depends
// on an address that may vanish. For every dialect; runs on the connection's executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "admission/desk.hpp"
#include "workflow/files/asset_ref.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::admission {

struct Fetched {
    std::vector<workflow::AssetRef>
        assets;  // of each source, in their order; empty where it failed
    // What cannot be had: UNAUTHORIZED_DOMAIN, URL_NOT_ACCESSIBLE, INVALID_CONTENT_TYPE,
    // FILE_TOO_LARGE, INVALID_FILE_SOURCE, missing_asset.
    std::vector<workflow::Issue> issues;
};

// Fails only where the server itself is to blame: Code::rate_limited when too many requests fetch
// files already, and what the store says.
Task<Result<Fetched>> fetch_inputs(
    const Desk& desk, std::string tenant, std::vector<workflow::FileSource> sources
);

// The bytes of one file, which is not kept where it came from an address. `field` is the name for
// errors. Also fails where inputs_error() has something to say.
Task<Result<std::string>> fetch_bytes(
    const Desk& desk,
    std::string tenant,
    std::string source,
    std::string field,
    std::uint64_t bytes_max
);

// Which addresses a host that a request names may have.
assets::HostRule judge_host(const workflow::SecurityPolicy& policy, const std::string& host);

// Code::missing_asset where that is all, else Code::invalid_workflow. `issues` holds at least one.
Error inputs_error(const std::vector<workflow::Issue>& issues);

}  // namespace comfyd::admission
