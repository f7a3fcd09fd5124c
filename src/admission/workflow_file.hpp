// The workflow in a file that a request names by where it is to be had: "https://…",
// "data:image/png;base64,…", "asset:<id>", "blake3:<hash>", by the rules of inputs.hpp. Runs on the
// connection's executor.
#pragma once

#include <cstdint>
#include <string>

#include "admission/desk.hpp"

namespace comfyd::admission {

inline constexpr std::uint64_t kWorkflowFileBytesMax = 64 * 1024 * 1024;

// Failures of fetch_bytes() and of workflow::read_workflow_file(), with the field.
Task<Result<json::object>> fetch_workflow(
    const Desk& desk, std::string tenant, std::string source, std::string field
);

}  // namespace comfyd::admission
