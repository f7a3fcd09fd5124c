// POST /v2/workflows/validate and /v2/workflows/plan: what is wrong with a workflow and what
// running it would take, without running it. Added by add_workflows(); `services` outlives the
// router.
#pragma once

#include <vector>

#include "api/router.hpp"
#include "api/services.hpp"
#include "workflow/files/file_inputs.hpp"
#include "workflow/rules/issue.hpp"
#include "workflow/rules/security.hpp"

namespace comfyd::api {

void add_workflow_tools(Router& router, const Services& services);

namespace workflow_tools {

// Asks each address by a HEAD request whether it is there and what it is: URL_NOT_ACCESSIBLE,
// INVALID_CONTENT_TYPE, URL_VALIDATION_ERROR. At most kUrlsProbed addresses and kProbeTime in all;
// private addresses as inputs would be fetched from them.
inline constexpr std::size_t kUrlsProbed = 16;
inline constexpr Millis kProbeTime{10'000};
struct Probed {
    workflow::UrlInput input;
    workflow::FileKind kind = workflow::FileKind::other;  // that its loader takes
};
Task<std::vector<workflow::Issue>> probe_urls(
    Executor executor,
    std::vector<Probed> urls,
    workflow::SecurityPolicy policy,
    std::string ca_file  // as assets::IntakeLimits has it
);

json::object operation_validate();
json::object operation_plan();
json::object schemas();

}  // namespace workflow_tools
}  // namespace comfyd::api
