// Under which key a job may be answered with the outputs of an earlier one (docs/reuse.md). Any
// thread.
#pragma once

#include <optional>
#include <string>

#include "api/services.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "jobs/job.hpp"
#include "workflow/determinism.hpp"

namespace comfyd::api {

// The member "reuse", part of decode_common(). Code::invalid_argument.
Result<> decode_reuse(const json::object& from, jobs::Spec& spec);

// The request says so, or where it says nothing the settings of its tenant.
bool wants_reuse(const ApiOptions& options, const jobs::Spec& spec);

struct ReuseKey {
    std::string key;  // empty: the outputs of no other job will do
    std::optional<workflow::NotReusable> why_not{};
};
// `workflow` is as it goes to the worker; `spec` has its tenant, requirement, targets and
// extra_data. References outlive the call.
Task<Result<ReuseKey>> find_reuse_key(
    const Services& services,
    const workflow::Catalogue& catalogue,
    const json::object& workflow,
    const jobs::Spec& spec
);

}  // namespace comfyd::api
