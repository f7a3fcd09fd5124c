// What the scheduler is told of a workflow. Any thread.
#pragma once

#include <memory>
#include <string>

#include "base/json.hpp"
#include "jobs/job.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/plan/plan.hpp"

namespace comfyd::admission {

// All that a plan tells: not the requirement, nor whether the job may be merged.
scheduler::Profile profile_of(const workflow::Plan& plan);

// Null for a workflow that names no model: then nothing but its requirement matters, and a plan
// would cost more than it tells. Workflows that differ in texts and seeds alone, as most do, share
// one that was made before.
scheduler::ProfilePtr make_profile(
    const json::object& workflow,
    const std::shared_ptr<const workflow::Catalogue>& catalogue,
    const workflow::PlanOptions& options,
    const jobs::Spec& spec  // complete but for the profile
);

}  // namespace comfyd::admission
