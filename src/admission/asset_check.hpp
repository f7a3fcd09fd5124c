// References to assets in a workflow, checked before the job is accepted. For every dialect that
// submits; runs on the connection's executor.
#pragma once

#include <string>
#include <vector>

#include "admission/desk.hpp"
#include "workflow/rules/issue.hpp"

namespace comfyd::admission {

inline constexpr std::string_view kMissingAsset = "missing_asset";  // Issue::code

// Those that lead to no asset of the tenant, or say nothing that could lead to one. Fails with what
// the store says.
Task<Result<std::vector<workflow::Issue>>> find_missing_assets(
    const Desk& desk,
    std::string tenant,
    const json::object& graph  // outlives the call
);

}  // namespace comfyd::admission
