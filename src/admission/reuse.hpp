// Under which key a job may be answered with the outputs of an earlier one (docs/reuse.md). Any
// thread.
#pragma once

#include <optional>
#include <string>

#include "admission/desk.hpp"
#include "base/json.hpp"
#include "base/task.hpp"
#include "jobs/job.hpp"
#include "workflow/plan/determinism.hpp"

namespace comfyd::admission {

// The request says so, or where it says nothing the settings of its tenant.
bool wants_reuse(const Rules& rules, const jobs::Spec& spec);

struct ReuseKey {
    std::string key;  // empty: the outputs of no other job will do
    std::optional<workflow::NotReusable> why_not{};
};
// `workflow` is as it goes to the worker; `spec` has its tenant, requirement, targets and
// extra_data. References outlive the call.
Task<Result<ReuseKey>> find_reuse_key(
    const Desk& desk,
    const workflow::Catalogue& catalogue,
    const json::object& workflow,
    const jobs::Spec& spec
);

}  // namespace comfyd::admission
