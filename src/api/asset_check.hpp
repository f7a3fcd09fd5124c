// References to uploaded assets in a workflow, checked before the job is accepted. For every
// dialect that submits; runs on the connection's executor.
#pragma once

#include <string>
#include <vector>

#include "api/services.hpp"
#include "workflow/check.hpp"

namespace comfyd::api {

// References in the form of one. Code::missing_asset.
Result<> check_references(const json::object& graph);

// Those that the check of the workflow has found lead to assets of the tenant. Code::missing_asset,
// and what the store says.
Task<Result<>> check_assets(
    std::string tenant, const Services& services, std::vector<workflow::AssetReference> references
);

}  // namespace comfyd::api
